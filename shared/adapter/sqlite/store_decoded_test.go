package sqlite

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/sortie-dev/sortie/shared/run"
)

// TestDecodedRemembersTheLastRecords puts more records than it keeps, and one whose key is that of
// another document.
func TestDecodedRemembersTheLastRecords(t *testing.T) {
	t.Parallel()
	d := newDecoded()
	doc := func(i int) []byte { return fmt.Appendf(nil, "run %d", i) }
	const last = 3 * newestLimit
	for i := range last {
		d.put(doc(i), run.Run{ID: string(doc(i))})
	}
	if _, ok := d.get(doc(0)); ok {
		t.Error("got the first record, want it forgotten")
	}
	for i := last - newestLimit; i < last; i++ {
		if r, ok := d.get(doc(i)); !ok || r.ID != string(doc(i)) {
			t.Fatalf("got %q %t, want record %d", r.ID, ok, i)
		}
	}
	d.young[maphash.Bytes(d.seed, doc(0))] = coded{doc(last - 1), run.Run{}}
	if _, ok := d.get(doc(0)); ok {
		t.Error("got a record with the same key and another document")
	}
}
