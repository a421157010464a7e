package hash_test

import (
	"fmt"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/hash"
)

// TestSimilarTextsSpread counts texts that differ in their last characters in ten parts.
func TestSimilarTextsSpread(t *testing.T) {
	t.Parallel()
	var parts [10]int
	for i := range 10_000 {
		parts[hash.Of(fmt.Sprintf("job-%04d", i))%10]++
	}
	for part, n := range parts {
		if n < 900 || n > 1100 {
			t.Errorf("part %d: got %d texts of 10000, want about 1000", part, n)
		}
	}
	if got, want := hash.Of("a"), uint64(9413272369427828315); got != want {
		t.Errorf("got %d, want %d: stored jobs keep their delays", got, want)
	}
}
