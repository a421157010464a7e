package tinymodel

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestSameSeedSameFile checks that a seed determines the bytes, and that another seed gives
// others.
func TestSameSeedSameFile(t *testing.T) {
	t.Parallel()
	var files [][]byte
	for _, seed := range []uint64{1, 1, 2} {
		file := filepath.Join(t.TempDir(), "m.gguf")
		if err := New(Tiny, seed).WriteGGUF(file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, text)
	}
	if !bytes.Equal(files[0], files[1]) || bytes.Equal(files[1], files[2]) {
		t.Error("got files that do not depend on the seed alone")
	}
}

func TestVocabulary(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, each := range vocabulary() {
		known[each.text] = true
	}
	if len(known) != vocabularySize || !known["<0xFF>"] || !known[space] {
		t.Errorf("got %d tokens, want %d with every byte and the space", len(known), vocabularySize)
	}
}
