package clock

import (
	"context"
	"sync"
	"time"
)

// AfterFunc calls do in its own goroutine after d, unless stop is called before. stop does not
// wait for do. For the clocks of this package, it needs no goroutine that waits for the timer.
func AfterFunc(c Clock, d time.Duration, do func()) (stop func()) {
	switch c := c.(type) {
	case System:
		t := time.AfterFunc(d, do)
		return func() { t.Stop() }
	case *Virtual:
		return c.afterFunc(d, do)
	}
	fired, release := c.NewTimer(d)
	over := make(chan struct{})
	go func() {
		select {
		case <-fired:
			do()
		case <-over:
		}
	}()
	return sync.OnceFunc(func() {
		release()
		close(over)
	})
}

// WithTimeout returns a copy of ctx that is cancelled after d. The returned function cancels
// it and releases its timer.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := AfterFunc(c, d, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// Every calls do repeatedly until stop is called. The first call is after d, each further one d
// after the previous call returned. stop waits for a call that runs, so do must not call stop.
func Every(c Clock, d time.Duration, do func()) (stop func()) {
	r := &repeated{clock: c, interval: d, do: do, idle: make(chan struct{}, 1)}
	r.arm()
	r.idle <- struct{}{}
	return r.stop
}

type repeated struct {
	clock    Clock
	interval time.Duration
	do       func()

	idle chan struct{} // a lock of the following fields: has a value while unlocked
	over bool
	end  func()
}

func (r *repeated) arm() { r.end = AfterFunc(r.clock, r.interval, r.fire) }

func (r *repeated) fire() {
	<-r.idle
	defer func() { r.idle <- struct{}{} }()
	if !r.over {
		r.do()
		r.arm()
	}
}

func (r *repeated) stop() {
	<-r.idle
	defer func() { r.idle <- struct{}{} }()
	r.over = true
	r.end()
}
