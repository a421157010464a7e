package stack

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

const (
	// taskPause is how long the events of inference tasks are gathered before they are relayed.
	taskPause = 10 * time.Millisecond
	// taskRecent is how long after the commit of a task the relay does so.
	taskRecent = time.Second
)

// taskPace slows the relay while inference tasks are committed: a task is likely to wait for its
// first token then, which needs the same processors and the same file. The events of the task
// itself are of use a moment later, too.
type taskPace struct {
	clock clock.Clock
	// last is the time of the last commit of a task in Unix nanoseconds; 0 without one.
	last atomic.Int64
}

var _ port.Observer = (*taskPace)(nil)

// Committed implements port.Observer.
func (p *taskPace) Committed(_ context.Context, r run.Run, _ []run.Event) {
	if r.Work.Inference != nil {
		p.last.Store(p.clock.Now().UnixNano())
	}
}

// wait waits for the events to gather, if a task was committed a moment ago.
func (p *taskPace) wait(ctx context.Context) {
	last := p.last.Load()
	if age := p.clock.Now().Sub(time.Unix(0, last)); last != 0 && age >= 0 && age < taskRecent {
		_ = clock.Sleep(ctx, p.clock, taskPause) //nolint:errcheck // ctx has ended
	}
}

const (
	// gatherPause is how long events are gathered while the relay is busy, and gatherRecent
	// how long after a relay it is.
	gatherPause  = 25 * time.Millisecond
	gatherRecent = 50 * time.Millisecond
)

// relayPace makes a busy relay gather the events of several commits: each relay is a commit with
// an fsync, and the rows and signatures of a stream are for all events of one. An event after a
// pause is relayed at once. It is used by one goroutine.
type relayPace struct {
	clock clock.Clock
	last  time.Time // a relay ended
}

// relayed notes how many changes a relay has relayed.
func (p *relayPace) relayed(changes int) {
	if changes > 0 {
		p.last = p.clock.Now()
	}
}

// wait waits for more events, if the last relay was a moment ago.
func (p *relayPace) wait(ctx context.Context) {
	if age := p.clock.Now().Sub(p.last); age >= 0 && age < gatherRecent {
		_ = clock.Sleep(ctx, p.clock, gatherPause) //nolint:errcheck // ctx has ended
	}
}
