//go:build unix

package proctree

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
)

// TestStoppedOutputIsReadToItsEnd stops output whose reader was late, while the pipe is open.
func TestStoppedOutputIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	o := NewOutput(read)
	defer o.Close()
	want := bytes.Repeat([]byte("output\n"), 5000) // less than a pipe holds, more than one Read
	if _, err := write.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := o.Stop(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(struct{ io.Reader }{o}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
	}
}

// TestStopEndsAWaitingRead stops output that another process holds open.
func TestStopEndsAWaitingRead(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	o := NewOutput(read)
	defer o.Close()
	ended := make(chan error)
	go func() {
		_, err := o.Read(make([]byte, 1))
		ended <- err
	}()
	if err := o.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want EOF", err)
	}
}

// TestStoppedOutputIsBounded has a process that never stops writing.
func TestStoppedOutputIsBounded(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := NewOutput(read)
	defer o.Close()
	if err := o.Stop(); err != nil {
		t.Fatal(err)
	}
	got := 0
	for b := make([]byte, 4096); ; {
		if _, err := write.Write(b); err != nil {
			t.Fatal(err)
		}
		n, err := o.Read(b)
		if got += n; err != nil {
			break
		}
	}
	if write.Close(); got != mostHeld {
		t.Errorf("got %d bytes, want %d", got, mostHeld)
	}
}
