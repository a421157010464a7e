package httpkit

import (
	"net/http"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Padded is a response with one JSON document that may take long. For proxies that limit the
// time to the first byte or between bytes, it sends white space at intervals, which may precede
// JSON. Once the response has begun, its status is 200.
type Padded struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	begun bool
	ended bool
	stop  func()
}

// NewPadded returns a response that sends a line end after each interval until End. An interval
// of 0 sends no line ends.
func NewPadded(w http.ResponseWriter, c clock.Clock, every time.Duration) *Padded {
	p := &Padded{w: w, stop: func() {}}
	if every > 0 {
		p.begin(c, every)
	}
	return p
}

func (p *Padded) begin(c clock.Clock, every time.Duration) {
	over := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for {
			timer, stop := c.NewTimer(every)
			select {
			case <-timer:
				p.pad()
			case <-over:
				stop()
				return
			}
		}
	})
	p.stop = sync.OnceFunc(func() {
		close(over)
		waiting.Wait()
	})
}

// pad sends a line end. A failure shows again when the handler sends the document.
func (p *Padded) pad() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if !p.begun {
		p.begun = true
		p.w.Header().Set("Content-Type", "application/json")
		p.w.Header().Set("Cache-Control", "no-store")
		p.w.WriteHeader(http.StatusOK)
	}
	_, _ = p.w.Write([]byte("\n"))
	_ = http.NewResponseController(p.w).Flush()
}

// End stops the white space and reports whether the response has begun. After it, the caller
// may use the ResponseWriter. It may be called repeatedly.
func (p *Padded) End() (begun bool) {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.stop()
	return p.begun
}

// Write sends the document: as the whole response, or as the rest of one that has begun.
func (p *Padded) Write(v any) error {
	if !p.End() {
		return WriteJSON(p.w, http.StatusOK, v)
	}
	text, err := JSON(v)
	if err != nil {
		return err
	}
	_, _ = p.w.Write(text) // an error means that the client has disconnected
	return nil
}
