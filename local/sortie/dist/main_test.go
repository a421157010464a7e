package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPackIsReproducible packs files with different times and modes.
func TestPackIsReproducible(t *testing.T) {
	t.Parallel()
	modified := time.Unix(1_700_000_000, 0).UTC()
	pack := func(mode os.FileMode, touched time.Time) []byte {
		dir := t.TempDir()
		var files []string
		for _, name := range []string{"sortie", "README.md"} {
			file := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(file, []byte(name), mode), os.Chtimes(file, touched, touched)); err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		var out bytes.Buffer
		if err := pack(&out, "sortie_1_linux_amd64", files, modified); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	first, second := pack(0o600, time.Unix(1, 0)), pack(0o700, time.Unix(2, 0))
	if !bytes.Equal(first, second) {
		t.Error("got different archives of equal files")
	}
	uncompressed, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	reader := tar.NewReader(uncompressed)
	for _, want := range []tar.Header{
		{Name: "sortie_1_linux_amd64/sortie", Mode: 0o755}, {Name: "sortie_1_linux_amd64/README.md", Mode: 0o644},
	} {
		got, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != want.Name || got.Mode != want.Mode || !got.ModTime.Equal(modified) {
			t.Errorf("got %s with mode %o and time %s, want %s with mode %o and time %s", got.Name, got.Mode, got.ModTime, want.Name, want.Mode, modified)
		}
	}
}
