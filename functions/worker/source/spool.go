package source

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Spool buffers the components of one entity: the first part in memory, the rest in an
// unnamed file, which disappears with the process. It is not safe for concurrent
// use.
type Spool struct {
	dir   string
	limit int
	mem   []byte
	file  *os.File
	size  int64
}

// NewSpool returns an empty spool that holds limit bytes in memory and creates its file
// in dir.
func NewSpool(dir string, limit int) *Spool { return &Spool{dir: dir, limit: limit} }

// Write appends p.
func (s *Spool) Write(p []byte) (int, error) {
	total := len(p)
	if room := s.limit - len(s.mem); room > 0 && s.size == int64(len(s.mem)) {
		n := min(room, len(p))
		s.mem = append(s.mem, p[:n]...)
		s.size += int64(n)
		p = p[n:]
	}
	if len(p) == 0 {
		return total, nil
	}
	if s.file == nil {
		file, err := Unnamed(s.dir)
		if err != nil {
			return 0, err
		}
		s.file = file
	}
	n, err := s.file.WriteAt(p, s.size-int64(len(s.mem)))
	s.size += int64(n)
	if err != nil {
		return total - len(p) + n, fmt.Errorf("cannot write a temporary file: %w", err)
	}
	return total, nil
}

// ReadAt implements io.ReaderAt over the written bytes.
func (s *Spool) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	if off >= s.size {
		return 0, io.EOF
	}
	var n int
	if off < int64(len(s.mem)) {
		n = copy(p, s.mem[off:])
		off += int64(n)
	}
	if n < len(p) && off < s.size {
		rest := p[n:min(int64(len(p)), int64(n)+s.size-off)]
		m, err := s.file.ReadAt(rest, off-int64(len(s.mem)))
		n += m
		if err != nil && m < len(rest) {
			return n, fmt.Errorf("cannot read a temporary file: %w", err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size returns the number of bytes.
func (s *Spool) Size() int64 { return s.size }

// Cut truncates the spool to size.
func (s *Spool) Cut(size int64) {
	s.size = min(s.size, size)
	if s.size < int64(len(s.mem)) {
		s.mem = s.mem[:s.size]
	}
	if s.size == 0 && s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// Close releases the memory and the file. The spool is then empty and can be reused.
func (s *Spool) Close() {
	s.Cut(0)
	s.mem = nil
}

// Unnamed creates a file in dir and removes its name, so that the file disappears when
// it is closed or the process ends.
func Unnamed(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "sortie-export-*")
	if err != nil {
		return nil, fmt.Errorf("cannot create a temporary file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("cannot create a temporary file: %w", err)
	}
	return file, nil
}
