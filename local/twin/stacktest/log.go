package stacktest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// Log is a buffer that many goroutines may write to.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String gives what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Secrets names what must not be in the log, with what stands around it; nil
// where there is nothing.
func (l *Log) Secrets() error {
	text := l.String()
	for _, secret := range []string{"eyJ", "X-Amz-Signature", "token=", "SECRET"} {
		if at := strings.Index(text, secret); at >= 0 {
			return fmt.Errorf("a secret is in the log: %.200s", text[max(at-80, 0):])
		}
	}
	return nil
}
