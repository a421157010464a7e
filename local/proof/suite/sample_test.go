package suite

import (
	"slices"
	"testing"
)

func TestSample(t *testing.T) {
	t.Parallel()
	tests := []Test{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e", NeedsAll: true}}
	for n, want := range map[int]string{0: "abcde", 1: "abcde", 2: "abc", 3: "abd", 9: "ab"} {
		got := ""
		selected, unknown := sampled(tests, n, []string{"b", "z"})
		for _, test := range selected {
			got += test.Name
		}
		if got != want || !slices.Equal(unknown, []string{"z"}) {
			t.Errorf("every %d: got %s and the unknown %v, want %s and z", n, got, unknown, want)
		}
	}
}
