package stream

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// writeLimit is the timeout of one write to a reader. A slower reader is disconnected. It
// continues at its cursor when it reconnects.
const writeLimit = 20 * time.Second

// watch closes connections whose reader does not read. One goroutine checks all connections,
// and runs while there are any.
type watch struct {
	clock clock.Clock

	mu   sync.Mutex
	open map[*writing]struct{}
}

// writing is a connection of a watch.
type writing struct {
	clock clock.Clock
	// since is the start of the current write in Unix nanoseconds; 0 without one.
	since atomic.Int64
	// slow means that the watch closed the connection.
	slow atomic.Bool
	cut  func()
}

func newWatch(c clock.Clock) *watch { return &watch{clock: c, open: map[*writing]struct{}{}} }

// add watches a connection until end is called. cut must make the current write fail.
func (w *watch) add(cut func()) (conn *writing, end func()) {
	conn = &writing{clock: w.clock, cut: cut}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[conn] = struct{}{}
	if len(w.open) == 1 {
		go w.run()
	}
	return conn, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, conn)
	}
}

// run checks the connections while there are any.
func (w *watch) run() {
	for {
		due, stop := w.clock.NewTimer(writeLimit / 2)
		<-due
		stop()
		if !w.look() {
			return
		}
	}
}

// look closes connections with a slow write. It returns false if there is no connection.
func (w *watch) look() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.clock.Now().Add(-writeLimit).UnixNano()
	for conn := range w.open {
		if since := conn.since.Load(); since != 0 && since <= limit {
			conn.slow.Store(true)
			conn.cut()
		}
	}
	return len(w.open) > 0
}

// write calls do. It returns stream.ErrSlow if the watch closed the connection.
func (c *writing) write(do func() error) error {
	c.since.Store(c.clock.Now().UnixNano())
	defer c.since.Store(0)
	err := do()
	if err != nil && c.slow.Load() {
		return errors.Join(stream.ErrSlow, err)
	}
	return err
}
