package httpkit

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
)

// The time that each begun MiB of the body of a request may take to arrive, and that of a
// refused request. A refused request's body is read so that its connection can be used
// again.
const (
	bodyTime    = 10 * time.Second
	bodyPart    = 1 << 20
	refusedTime = 100 * time.Millisecond
)

// drainLimit is the size in bytes up to which net/http reads what a handler left of
// a body.
const drainLimit = 256 << 10

// past is a read deadline that is over.
var past = time.Unix(1, 0)

// timedBody is a body whose connection fails if the body takes longer than bodyTime for
// each bodyPart. Connections without deadlines, such as those of tests and of Lambda,
// have bodies that are complete.
type timedBody struct {
	io.ReadCloser
	conn  *http.ResponseController
	clock clock.Clock

	start   sync.Once
	stopped chan struct{}
	got     atomic.Int64 // bytes
	read    bool         // the body was read to its end, or cannot be read further

	mu          sync.Mutex
	ended, over bool // ended: the limit was stopped; over: it has failed reads
}

// timeBody limits the time of the request's body; nil if it has none.
func (s *server) timeBody(w http.ResponseWriter, r *http.Request) *timedBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	b := &timedBody{
		ReadCloser: r.Body, conn: http.NewResponseController(w), clock: s.config.Clock, stopped: make(chan struct{}),
	}
	r.Body = b
	return b
}

// Read starts the limit with the first call.
func (b *timedBody) Read(p []byte) (int, error) {
	b.start.Do(func() { b.limit(bodyTime) })
	n, err := b.ReadCloser.Read(p)
	b.got.Add(int64(n))
	if err != nil {
		b.read = true
		b.stop()
	}
	return n, err
}

// limit fails reads of the connection after d and as much again for each bodyPart that has
// arrived, unless the body ends before.
func (b *timedBody) limit(d time.Duration) {
	over, stop := b.clock.NewTimer(d)
	go func() {
		for parts := int64(1); ; parts++ {
			select {
			case <-over:
				stop()
			case <-b.stopped:
				stop()
				return
			}
			if b.got.Load()/bodyPart < parts {
				b.fail()
				return
			}
			over, stop = b.clock.NewTimer(d)
		}
	}()
}

// fail fails reads of the connection, unless the limit was stopped: the connection may
// serve another request then.
func (b *timedBody) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.over = true
		_ = b.conn.SetReadDeadline(past) // without deadlines, nothing waits
	}
}

// stop ends the limit, and reports whether it was over before.
func (b *timedBody) stop() (over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended = true
		close(b.stopped)
	}
	return b.over
}

// refuse prepares the connection for an error response: net/http would wait for
// the rest of the body before it. A body that does not arrive closes the
// connection.
func (b *timedBody) refuse(w http.ResponseWriter, r *http.Request) {
	if b.read || r.ContentLength > drainLimit {
		return
	}
	if r.Header.Get("Expect") == "" {
		b.limit(refusedTime)
		n, err := io.Copy(io.Discard, io.LimitReader(b.ReadCloser, drainLimit))
		if over := b.stop(); !over && err == nil && n < drainLimit {
			return
		}
	}
	w.Header().Set("Connection", "close")
	_ = b.conn.SetReadDeadline(past) // without deadlines, nothing waits
}
