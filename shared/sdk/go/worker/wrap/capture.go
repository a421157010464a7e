//go:build unix

package wrap

import (
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// capture stores the start and the end of a stream, a quarter and three quarters of its limit,
// and drops the middle. The limit also limits its memory. It is safe for concurrent use.
type capture struct {
	mu      sync.Mutex
	limit   int
	head    []byte
	tail    []byte // a ring, once it is full
	next    int    // the oldest byte of a full ring
	written int64
}

func newCapture(limit int) *capture { return &capture{limit: limit} }

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := len(p)
	c.written += int64(all)
	headLimit := c.limit / 4
	first := min(headLimit-len(c.head), len(p))
	c.head = append(c.head, p[:first]...)
	p = p[first:]
	ring := c.limit - headLimit
	if len(p) > ring {
		p = p[len(p)-ring:]
	}
	for len(p) > 0 {
		if len(c.tail) < ring {
			n := min(ring-len(c.tail), len(p))
			c.tail = append(c.tail, p[:n]...)
			p = p[n:]
			continue
		}
		n := copy(c.tail[c.next:], p)
		c.next = (c.next + n) % ring
		p = p[n:]
	}
	return all, nil
}

// String returns the stored text, with a line in place of the dropped bytes.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := string(c.tail[c.next:]) + string(c.tail[:c.next])
	if dropped := c.written - int64(len(c.head)+len(tail)); dropped > 0 {
		return string(c.head) + string(limit.CutMark(dropped)) + tail
	}
	return string(c.head) + tail
}

// lastLine returns the last line that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
