package httpkit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// spoolMemory is the size, in bytes, up to which a Spool is in memory.
const spoolMemory = 256 << 10

// Spool is a body that was read completely: in memory up to 256 KiB, otherwise in a temporary
// file. The file has no name, so it is removed when the process ends.
type Spool struct {
	io.ReaderAt
	// Size is the number of bytes.
	Size int64
	file *os.File
}

// newSpool reads a body to its end. An incomplete body is an InvalidRequest fault.
func newSpool(body io.Reader) (*Spool, error) {
	var head bytes.Buffer
	n, err := io.CopyN(&head, body, spoolMemory)
	if errors.Is(err, io.EOF) {
		return &Spool{ReaderAt: bytes.NewReader(head.Bytes()), Size: n}, nil
	}
	if err != nil {
		return nil, incomplete(err)
	}
	file, err := os.CreateTemp("", "sortie-body-*")
	if err != nil {
		return nil, fmt.Errorf("cannot create a file for the body: %w", err)
	}
	s := &Spool{ReaderAt: file, file: file}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot hide the file of the body: %w", err), s.Close())
	}
	in := &readError{from: io.MultiReader(&head, body)}
	if s.Size, err = io.Copy(file, in); err != nil {
		if in.err != nil {
			err = incomplete(in.err)
		}
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func incomplete(err error) error { return fault.Wrap(err, fault.InvalidRequest, "incomplete body") }

// readError records the error of a reader. io.Copy does not distinguish it from that of the
// writer.
type readError struct {
	from io.Reader
	err  error
}

// Read implements io.Reader.
func (r *readError) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// Close removes the file, if there is one.
func (s *Spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
