package decoded

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/sortie-dev/sortie/shared/run"
)

// TestRunsRememberTheLastOnes puts more runs than are remembered, and one whose key is that of
// another document.
func TestRunsRememberTheLastOnes(t *testing.T) {
	t.Parallel()
	const limit = 8
	d := New(limit)
	doc := func(i int) []byte { return fmt.Appendf(nil, "run %d", i) }
	const last = 3 * limit
	for i := range last {
		d.Put(doc(i), &run.Run{ID: string(doc(i))})
	}
	if _, ok := d.Get(doc(0)); ok {
		t.Error("got the first run, want it forgotten")
	}
	for i := last - limit; i < last; i++ {
		if r, ok := d.Get(doc(i)); !ok || r.ID != string(doc(i)) {
			t.Fatalf("got %q %t, want run %d", r.ID, ok, i)
		}
	}
	d.young[maphash.Bytes(d.seed, doc(0))] = entry{doc(last - 1), &run.Run{}}
	if _, ok := d.Get(doc(0)); ok {
		t.Error("got the run of another document with the same key")
	}
}
