package porttest

import (
	"io"
	"testing/iotest"
)

// pattern is a body of that many bytes without repeated blocks.
type pattern int64

func (p pattern) size() int64 { return int64(p) }

func (p pattern) ReadAt(into []byte, offset int64) (int, error) {
	n := 0
	for ; n < len(into) && offset < int64(p); n, offset = n+1, offset+1 {
		word := uint64(offset/8) * 0x9e3779b97f4a7c15
		into[n] = byte(word >> (8 * (offset % 8)))
	}
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}

// Interrupted returns a body whose reads fail in the second half.
func Interrupted(size int64) io.ReaderAt { return interrupted(size) }

type interrupted int64

func (i interrupted) ReadAt(into []byte, offset int64) (int, error) {
	if offset+int64(len(into)) > int64(i)/2 {
		return 0, iotest.ErrTimeout
	}
	return pattern(i).ReadAt(into, offset)
}
