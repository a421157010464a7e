package archive

import (
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"white space":                 {"\r\n  White \t House\u00a0Tapes \n", "White House Tapes"},
		"a decimal reference":         {"H&#233;bert", "Hébert"},
		"a hexadecimal reference":     {"H&#xE9;bert", "Hébert"},
		"a named reference":           {"H&eacute;bert &amp; Sons", "Hébert & Sons"},
		"a mistyped quotation mark":   {`("Dan&wuot;) Daniel`, `("Dan") Daniel`},
		"an unknown name":             {"&wombat; &quit? &;", "&wombat; &quit? &;"},
		"an ampersand":                {"AT&T, R&D; 3 &lt 4", "AT&T, R&D; 3 &lt 4"},
		"control characters":          {"a\x00b\x1b[0m\u0085c&#1;", "ab[0m c"},
		"bytes that are no UTF-8":     {"caf\xe9 \xff", "caf"},
		"a reference to no character": {"&#0;&#xD800;x", "x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Clean(tt.in); got != tt.want {
				t.Errorf("Clean(%q): got %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestCutPlaceholder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"after a sentence":     {"They met. Topics of conversation included ....", "They met."},
		"alone":                {"Topics of conversation included ...", ""},
		"an ellipsis":          {"They met. Topics of conversation included …", "They met."},
		"with topics":          {"They met. Topics of conversation included trade ...", "They met. Topics of conversation included trade ..."},
		"without the sentence": {"They met ....", "They met ...."},
		"not at the end":       {"Topics of conversation included .... They left.", "Topics of conversation included .... They left."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := CutPlaceholder(tt.in); got != tt.want {
				t.Errorf("CutPlaceholder(%q): got %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	f.Add("H&#233;bert &wuot; \xff\x00 &amp;#233;")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) {
			t.Fatalf("Clean(%q): got invalid UTF-8 %q", s, got)
		}
		for _, r := range got {
			if r < ' ' || r == utf8.RuneError {
				t.Fatalf("Clean(%q) = %q", s, got)
			}
		}
		CutPlaceholder(got)
	})
}
