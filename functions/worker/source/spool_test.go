package source

import (
	"bytes"
	"io"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// TestSpoolIsBytes checks that a spool behaves as a byte slice, for any limit of its memory.
func TestSpoolIsBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		spool := NewSpool(dir, rapid.IntRange(0, 40).Draw(t, "limit"))
		defer spool.Close()
		var want []byte
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				p := rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "p")
				if n, err := spool.Write(p); n != len(p) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
				want = append(want, p...)
			},
			"cut": func(t *rapid.T) {
				size := rapid.IntRange(0, len(want)+5).Draw(t, "size")
				spool.Cut(int64(size))
				want = want[:min(size, len(want))]
			},
			"": func(t *rapid.T) {
				got, err := io.ReadAll(io.NewSectionReader(spool, 0, spool.Size()))
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("holds %v, %v; want %v", got, err, want)
				}
				off := rapid.IntRange(0, len(want)).Draw(t, "off")
				p := make([]byte, 7)
				n, _ := spool.ReadAt(p, int64(off))
				if !bytes.Equal(p[:n], want[off:min(off+7, len(want))]) {
					t.Fatalf("ReadAt(%d) = %v", off, p[:n])
				}
			},
		})
	})
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("got files %v, want none", left)
	}
}
