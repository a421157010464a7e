package decoded

import (
	"fmt"
	"hash/maphash"
	"testing"
)

// TestTheLastDocumentsAreRemembered puts more documents than the cache keeps. It also adds an
// entry whose hash collides with that of another document.
func TestTheLastDocumentsAreRemembered(t *testing.T) {
	t.Parallel()
	const most, last = 8, 24
	d := New[string](most, 1000)
	doc := func(i int) []byte { return fmt.Appendf(nil, "document %d", i) }
	for i := range last {
		value := string(doc(i))
		d.Put(doc(i), &value)
	}
	if _, ok := d.Get(doc(0)); ok {
		t.Error("got the first document, want it forgotten")
	}
	for i := last - most; i < last; i++ {
		if value, ok := d.Get(doc(i)); !ok || value != string(doc(i)) {
			t.Fatalf("got %q %t, want document %d", value, ok, i)
		}
	}
	d.young[maphash.Bytes(d.seed, doc(0))] = entry[string]{doc(last - 1), new(string)}
	if _, ok := d.Get(doc(0)); ok {
		t.Error("got the value of another document with the same key")
	}
}

// TestSizeOfTheDocumentsIsBounded puts documents of 100 bytes into a cache of 250 bytes, and a
// document that is larger than the cache.
func TestSizeOfTheDocumentsIsBounded(t *testing.T) {
	t.Parallel()
	d := New[int](1000, 250)
	for i := range 100 {
		d.Put(fmt.Appendf(nil, "%0100d", i), new(i))
		kept := 0
		for _, generation := range []map[uint64]entry[int]{d.young, d.aging} {
			for _, e := range generation {
				kept += len(e.doc)
			}
		}
		if kept > 500 {
			t.Fatalf("got %d bytes after %d documents, want at most 500", kept, i+1)
		}
		if value, ok := d.Get(fmt.Appendf(nil, "%0100d", i)); !ok || value != i {
			t.Fatalf("got %d %t, want document %d", value, ok, i)
		}
	}
	large := make([]byte, 251)
	d.Put(large, new(1))
	if _, ok := d.Get(large); ok {
		t.Error("got a document larger than all together may be")
	}
}

// TestRepeatedDocumentTakesItsSizeOnce puts one document many times beside another one.
func TestRepeatedDocumentTakesItsSizeOnce(t *testing.T) {
	t.Parallel()
	d := New[int](1000, 250)
	other, repeated := fmt.Appendf(nil, "%0100d", 1), fmt.Appendf(nil, "%0100d", 2)
	d.Put(other, new(1))
	for range 10 {
		d.Put(repeated, new(2))
	}
	if len(d.young) != 2 || d.bytes != 200 {
		t.Errorf("got %d documents of %d bytes, want 2 of 200", len(d.young), d.bytes)
	}
}
