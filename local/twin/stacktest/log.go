package stacktest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// Log is a buffer that is safe for concurrent use.
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

// String returns the text so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Secrets returns an error with the surrounding text if the log contains a
// secret.
func (l *Log) Secrets() error {
	text := l.String()
	for _, secret := range []string{"eyJ", "X-Amz-Signature", "token=", "SECRET"} {
		if at := strings.Index(text, secret); at >= 0 {
			return fmt.Errorf("secret in the log: %.200s", text[max(at-80, 0):])
		}
	}
	return nil
}
