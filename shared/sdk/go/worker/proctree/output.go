//go:build unix

package proctree

import (
	"cmp"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// mostHeld is the most that a pipe holds: fs.pipe-max-size of Linux, without privileges.
const mostHeld = 1 << 20

// Output reads what the programs of a tree write to a pipe.
type Output struct {
	pipe *os.File
	held atomic.Int64 // what Read may still return after Stop
}

// NewOutput returns the output that arrives at the reading end of a pipe.
func NewOutput(pipe *os.File) *Output { return &Output{pipe: pipe} }

// Read reads output. After Stop it returns what the pipe holds, and then io.EOF.
func (o *Output) Read(b []byte) (int, error) {
	n, err := o.pipe.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	held := o.held.Load()
	if n, err = o.readHeld(b[:min(int64(len(b)), held)]); n <= 0 {
		return 0, cmp.Or(err, io.EOF)
	}
	o.held.Add(int64(-n))
	return n, nil
}

// readHeld reads what the pipe holds, and does not wait. The deadline has no effect on it.
func (o *Output) readHeld(b []byte) (n int, err error) {
	raw, err := o.pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(file uintptr) {
		for n, err = syscall.Read(int(file), b); errors.Is(err, syscall.EINTR); {
			n, err = syscall.Read(int(file), b)
		}
	})
	if errors.Is(err, syscall.EAGAIN) {
		err = nil
	}
	return n, errors.Join(failed, err)
}

// Stop ends the wait for output. A process that still writes cannot delay the end of the output.
func (o *Output) Stop() error {
	o.held.Store(mostHeld)
	return o.pipe.SetReadDeadline(time.Unix(1, 0))
}

// Close closes the pipe.
func (o *Output) Close() error { return o.pipe.Close() }
