package suite

import "testing"

func TestEveryNthTestIsSelected(t *testing.T) {
	t.Parallel()
	tests := []Test{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e", NeedsAll: true}}
	for n, want := range map[int]string{0: "abcde", 1: "abcde", 2: "ac", 3: "ad", 9: "a"} {
		got := ""
		for _, test := range everyNth(tests, n) {
			got += test.Name
		}
		if got != want {
			t.Errorf("every %d: got %s, want %s", n, got, want)
		}
	}
}
