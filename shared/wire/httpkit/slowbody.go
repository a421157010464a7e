package httpkit

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// bodyTime is the time limit for each started bodyPart (1 MiB) of a request body. refusedTime
// is the limit for the body of a refused request, which is read so that its connection can be
// reused.
const (
	bodyTime    = 10 * time.Second
	bodyPart    = 1 << 20
	refusedTime = 100 * time.Millisecond
)

// drainLimit is the number of bytes up to which net/http itself reads the rest of a body after
// the handler.
const drainLimit = 256 << 10

// past is a deadline in the past.
var past = time.Unix(1, 0)

// timedBody is a body whose connection fails if the body takes longer than bodyTime for each
// bodyPart. Bodies of connections without deadlines, as in tests and Lambda, are already
// complete.
type timedBody struct {
	io.ReadCloser
	conn  *http.ResponseController
	clock clock.Clock

	start   sync.Once
	stopped chan struct{}
	got     atomic.Int64 // bytes that were read
	read    bool         // the body was read to its end, or cannot be read further

	mu          sync.Mutex
	ended, over bool // ended: the limit was stopped; over: it has expired
}

// timeBody limits the time of the request's body; it returns nil if there is no body.
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

// Read reads the body. The first call starts the time limit.
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

// limit makes reads of the connection fail after d, extended by d for each bodyPart that has
// arrived. It ends when stop is called.
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

// fail makes reads of the connection fail, unless the limit was stopped. In that case the
// connection may already serve another request.
func (b *timedBody) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.over = true
		_ = b.conn.SetReadDeadline(past) // without deadlines, nothing waits
	}
}

// stop ends the limit, and reports whether it had already expired.
func (b *timedBody) stop() (over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended = true
		close(b.stopped)
	}
	return b.over
}

// refuse prepares the connection for an error response. Otherwise net/http would first wait for
// the rest of the body. If the rest does not arrive, the connection is closed.
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
