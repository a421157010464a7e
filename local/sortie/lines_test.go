package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// lines collects the output of a program, for tests that wait for a line.
type lines struct {
	mu    sync.Mutex
	more  *sync.Cond
	text  bytes.Buffer
	read  int
	ended bool
}

func newLines() *lines {
	l := &lines{}
	l.more = sync.NewCond(&l.mu)
	return l
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.more.Broadcast()
	return l.text.Write(p)
}

func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.more.Broadcast()
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// next waits for the next line that contains part and returns it.
func (l *lines) next(t *testing.T, part string) string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		rest := l.text.String()[l.read:]
		line, _, whole := strings.Cut(rest, "\n")
		switch {
		case whole:
			l.read += len(line) + 1
			if strings.Contains(line, part) {
				return line
			}
		case l.ended:
			t.Fatalf("the program ended, want a line with %q", part)
		default:
			l.more.Wait()
		}
	}
}
