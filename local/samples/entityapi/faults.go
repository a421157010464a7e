package entityapi

import (
	"net/http"
	"sync"
	"time"
)

// Forever is a number of times without an end.
const Forever = -1

// Clock times delays.
type Clock interface {
	// NewTimer sends once after d; stop releases the timer.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Fault is a fault of responses. Its zero value is no fault. The first Busy
// responses are 503, the next Cut are interrupted in the middle of their body,
// and the rest are correct. Clients are expected to retry.
type Fault struct {
	// Busy counts the 503 BACKEND_ERROR responses with Retry-After: 0.
	Busy int
	// Cut counts the responses whose connection closes halfway.
	Cut int
	// Delay comes before every response.
	Delay time.Duration
}

// faultCounts counts the requests for each faulty resource.
type faultCounts struct {
	clock Clock
	mu    sync.Mutex
	asked map[string]int
}

// next returns the fault of this response, after its delay or when the client
// has disconnected.
func (t *faultCounts) next(r *http.Request, key string, of Fault) (busy, cut bool) {
	if of == (Fault{}) {
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

// interrupted closes the connection in the middle of a body whose length has been
// announced.
type interrupted struct {
	http.ResponseWriter
	left int64
}

// Write passes on what fits into the first half, then closes the connection.
func (h *interrupted) Write(b []byte) (int, error) {
	if int64(len(b)) < h.left {
		h.left -= int64(len(b))
		return h.ResponseWriter.Write(b)
	}
	_, _ = h.ResponseWriter.Write(b[:h.left])
	_ = http.NewResponseController(h.ResponseWriter).Flush()
	panic(http.ErrAbortHandler) // net/http closes the connection
}
