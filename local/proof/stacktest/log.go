package stacktest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/fault"
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

// names removes names that contain the word SECRET but are no secrets.
var names = strings.NewReplacer(string(fault.SecretMissing), "", "missing R2_SECRET_ACCESS_KEY", "")

// Secrets returns an error with the surrounding text if the log contains a secret or one of
// others.
func (l *Log) Secrets(others ...string) error {
	text := names.Replace(l.String())
	for _, secret := range append([]string{"eyJ", "X-Amz-Signature", "token=", "SECRET"}, others...) {
		if at := strings.Index(text, secret); at >= 0 {
			return fmt.Errorf("secret in the log: %.200s", text[max(at-80, 0):])
		}
	}
	return nil
}
