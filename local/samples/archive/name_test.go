package archive

import "testing"

func TestSamePerson(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		a, b string
		want bool
	}{
		"two name files":      {"Nixon, Richard M. (President)", "Nixon, Richard M. (Richard Milhous), 1913-1994", true},
		"a middle initial":    {"Kissinger, Henry A.", "Kissinger, Henry, 1923-", true},
		"a nickname":          {`Haldeman, H. R. ("Bob")`, "Haldeman, H. R. (Harry R.), 1926-1993", true},
		"born only":           {"Ziegler, Ronald L.", "Ziegler, Ronald L. (Ronald Louis), 1939-", true},
		"brothers":            {"Kennedy, John F.", "Kennedy, Robert F.", false},
		"father and son":      {"Blount, Winton M., Jr.", "Blount, Winton C.", false},
		"a surname alone":     {"Beave, [First name unknown]", "Beave, John", false},
		"one word":            {"Cher", "cher", true},
		"another middle name": {"Price, John R.", "Price, John R., Jr.", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := samePerson(tt.a, tt.b); got != tt.want || samePerson(tt.b, tt.a) != got {
				t.Errorf("%q and %q: %v, want %v, both ways", tt.a, tt.b, got, tt.want)
			}
		})
	}
}

func TestUnidentified(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"[Unknown person(s)]":         true,
		"Unknown person(s)":           true,
		"[Name withdrawn]":            true,
		"[unidentified]":              true,
		"":                            true,
		"Beave, [First name unknown]": false,
		"Rush, [David] Kenneth":       false,
		"White House operator":        false,
		"Unknown Soldiers' League":    false,
	}
	for name, want := range tests {
		if got := Unidentified(name); got != want {
			t.Errorf("Unidentified(%q) = %v", name, got)
		}
	}
	if got := shown("Beave, [First name unknown]"); got != "Beave" {
		t.Errorf("shown %q", got)
	}
}
