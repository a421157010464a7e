//go:build unix

package main

import (
	"fmt"
	"strings"
	"sync"
)

// capture keeps the beginning and the end of what is written to it, a quarter
// and three quarters of its limit, and cuts the middle. Its memory is bounded by
// the limit. It may be written from several goroutines.
type capture struct {
	mu      sync.Mutex
	limit   int
	head    []byte
	tail    []byte // a ring, once it is full
	next    int    // where the ring goes on
	written int64
}

func newCapture(limit int) *capture { return &capture{limit: limit} }

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := len(p)
	c.written += int64(all)
	most := c.limit / 4
	first := min(most-len(c.head), len(p))
	c.head = append(c.head, p[:first]...)
	p = p[first:]
	ring := c.limit - most
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

// String is what was kept; where something is missing it says how much.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := string(c.tail[c.next:]) + string(c.tail[:c.next])
	if gone := c.written - int64(len(c.head)+len(tail)); gone > 0 {
		return fmt.Sprintf("%s\n[%d bytes are cut here]\n%s", c.head, gone, tail)
	}
	return string(c.head) + tail
}

// lastLine is the last line that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
