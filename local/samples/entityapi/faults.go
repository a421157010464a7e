package entityapi

import (
	"net/http"
	"sync"
	"time"
)

// Forever is a number of times without a limit.
const Forever = -1

// Clock times delays.
type Clock interface {
	// NewTimer returns a channel that receives once after d. stop releases the timer.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Fault is a fault of the responses for a resource. The zero value is no fault. The first Busy
// responses are 503. The next Cut responses end in the middle of their body. All later ones are
// correct. Clients are expected to retry.
type Fault struct {
	// Busy is the number of responses with 503 BACKEND_ERROR and Retry-After: 0.
	Busy int
	// Cut is the number of responses whose connection is closed in the middle of the body.
	Cut int
	// Delay is the delay before every response.
	Delay time.Duration
}

// faultCounts counts the requests for each faulty resource.
type faultCounts struct {
	clock Clock
	mu    sync.Mutex
	asked map[string]int
}

// next waits for the delay of the fault, or until the client has disconnected. Then it counts
// the request and returns the fault of its response.
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

// interrupted is a response writer that closes the connection in the middle of a body of known
// length.
type interrupted struct {
	http.ResponseWriter
	left int64
}

// Write writes the bytes up to the middle of the body, and then closes the connection.
func (h *interrupted) Write(b []byte) (int, error) {
	if int64(len(b)) < h.left {
		h.left -= int64(len(b))
		return h.ResponseWriter.Write(b)
	}
	_, _ = h.ResponseWriter.Write(b[:h.left])
	_ = http.NewResponseController(h.ResponseWriter).Flush()
	panic(http.ErrAbortHandler) // net/http closes the connection
}
