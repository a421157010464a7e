package entityapi

import (
	"net/http"
	"sync"
	"time"
)

// Forever is a number of times that never ends.
const Forever = -1

// Clock times delays.
type Clock interface {
	// NewTimer sends once when d has passed; stop gives the timer up.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Trouble is what goes wrong with an answer on the way. Its zero value is no
// trouble. The first Busy answers are 503, the next Cut are broken off in the
// middle of their body, then all are well; a client is one that asks again.
type Trouble struct {
	// Busy counts the answers that are 503 BACKEND_ERROR, with Retry-After: 0.
	Busy int
	// Cut counts the answers whose connection ends halfway.
	Cut int
	// Delay comes before every answer.
	Delay time.Duration
}

// troubles counts how often what is in trouble was asked for. It holds nothing
// for what is not.
type troubles struct {
	clock Clock
	mu    sync.Mutex
	asked map[string]int
}

// next says what to do with this answer. It returns after the delay, or when
// the client has gone.
func (t *troubles) next(r *http.Request, key string, of Trouble) (busy, cut bool) {
	if of == (Trouble{}) {
		return false, false
	}
	if of.Delay > 0 {
		fired, stop := t.clock.NewTimer(of.Delay)
		defer stop()
		select {
		case <-fired:
		case <-r.Context().Done():
		}
	}
	t.mu.Lock()
	n := t.asked[key]
	t.asked[key] = n + 1
	t.mu.Unlock()
	switch {
	case of.Busy == Forever || n < of.Busy:
		return true, false
	case of.Cut == Forever || n < of.Busy+of.Cut:
		return false, true
	}
	return false, false
}

// halved breaks the connection off in the middle of a body whose length has
// been announced.
type halved struct {
	http.ResponseWriter
	left int64
}

// Write passes on what fits into the first half, then ends the connection.
func (h *halved) Write(b []byte) (int, error) {
	if int64(len(b)) < h.left {
		h.left -= int64(len(b))
		return h.ResponseWriter.Write(b)
	}
	_, _ = h.ResponseWriter.Write(b[:h.left])
	_ = http.NewResponseController(h.ResponseWriter).Flush()
	panic(http.ErrAbortHandler) // net/http's way to end a connection
}
