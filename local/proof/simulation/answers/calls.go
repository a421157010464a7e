package answers

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// errKilled is the result of a call of a process that was killed.
var errKilled = fault.New(fault.Unavailable, "the process was killed")

// fate draws the fault of a call.
func (w *world) fate(draw *rand.Rand) fake.Fate {
	switch x := draw.Float64(); {
	case !w.faulty():
	case x < w.plan.lost:
		return fake.Lost
	case x < w.plan.lost+w.plan.unsure:
		return fake.Unsure
	}
	return fake.Applied
}

// outputFates draws the faults of calls to the bucket.
func (w *world) outputFates(c fake.Call) fake.Fate { return w.fate(w.roll("bucket " + c.Method)) }

// pause waits for d, or returns the fault of a call whose context has ended.
func (p *process) pause(ctx context.Context, d time.Duration) error {
	if err := clock.Sleep(ctx, bubble, d); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the call was interrupted")
	}
	return nil
}

// maybeKill kills the process with the plan's probability. It reports whether the process is
// dead.
func (p *process) maybeKill(draw *rand.Rand, when string) bool {
	if !p.dead.Load() && p.w.faulty() && chance(draw, p.w.plan.crashes) {
		p.kill(when)
	}
	return p.dead.Load()
}

// during makes a call of the process. The call may be slow, fail, or fail after it was made.
// The process can be killed before and after it.
func during[T any](ctx context.Context, p *process, what string, write bool, do func() (T, error)) (result T, err error) {
	var none T
	w := p.w
	draw := w.roll(p.name + " " + what)
	if p.maybeKill(draw, "before "+what) {
		return none, errKilled
	}
	latency := upTo(draw, 2*time.Millisecond)
	if w.faulty() && chance(draw, w.plan.slow) {
		latency = upTo(draw, slowest)
	}
	if err := p.pause(ctx, latency); err != nil {
		return none, err
	}
	fate := w.fate(draw)
	if fate == fake.Lost {
		return none, fault.New(fault.Unavailable, "request lost")
	}
	if p.dead.Load() {
		return none, errKilled
	}
	result, err = do()
	if write {
		w.touch()
	}
	if p.maybeKill(draw, "after "+what) {
		return none, errKilled
	}
	if err := p.pause(context.WithoutCancel(ctx), upTo(draw, time.Millisecond)); err != nil {
		return none, err
	}
	switch {
	case p.dead.Load():
		return none, errKilled
	case fate == fake.Unsure && err == nil:
		return none, fault.New(fault.Unavailable, "response lost")
	}
	return result, err
}

// done is like during for a write without a result.
func done(ctx context.Context, p *process, what string, do func() error) error {
	_, err := during(ctx, p, what, true, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// touch records that something was written.
func (w *world) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = true
}

// faultyFeed is a feed with injected faults.
type faultyFeed struct {
	port.AnswerFeed
	p *process
}

// Head implements port.AnswerFeed.
func (f faultyFeed) Head(ctx context.Context, stream string) (port.Head, error) {
	return during(ctx, f.p, "head "+stream, false, func() (port.Head, error) { return f.AnswerFeed.Head(ctx, stream) })
}

// Append implements port.AnswerFeed.
func (f faultyFeed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	return during(ctx, f.p, "append "+stream, true, func() (port.Head, error) { return f.AnswerFeed.Append(ctx, stream, b) })
}

// Positions implements port.AnswerFeed.
func (f faultyFeed) Positions(ctx context.Context, stream string, records []port.FeedRecord) (map[string]int64, error) {
	return during(ctx, f.p, "positions "+stream, false, func() (map[string]int64, error) { return f.AnswerFeed.Positions(ctx, stream, records) })
}

// Read implements port.AnswerFeed.
func (f faultyFeed) Read(ctx context.Context, stream string, after int64, limit int) ([]port.FeedRecord, error) {
	return during(ctx, f.p, "read "+stream, false, func() ([]port.FeedRecord, error) { return f.AnswerFeed.Read(ctx, stream, after, limit) })
}

// Remove implements port.AnswerFeed.
func (f faultyFeed) Remove(ctx context.Context, stream string) error {
	_, err := during(ctx, f.p, "remove "+stream, true, func() (struct{}, error) { return struct{}{}, f.AnswerFeed.Remove(ctx, stream) })
	return err
}

// Wait implements port.AnswerFeed.
func (f faultyFeed) Wait(ctx context.Context, stream string, after int64) error {
	_, err := during(ctx, f.p, "wait "+stream, false, func() (struct{}, error) { return struct{}{}, f.AnswerFeed.Wait(ctx, stream, after) })
	return err
}
