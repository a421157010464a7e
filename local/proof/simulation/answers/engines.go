package answers

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// replica is an inference server, with the observed requests of its callers.
type replica struct {
	w    *world
	id   string
	mock *mockengine.Engine

	mu sync.Mutex
	// refuses is the way in which it refuses everything now; empty if it does not.
	refuses mockengine.Failure
	// open counts the requests of each process. closed is the time at which a process closed a
	// request that the engine keeps for longer than Sortie waits.
	open   map[*process]int
	closed map[*process]time.Time
}

const (
	// notices is the time for which a closed request may be kept before Sortie stops using the
	// replica, including the calls in progress. rests is the minimum time for which Sortie then
	// does not use it.
	notices = 7 * time.Second
	rests   = 50 * time.Second
	// longestKeep limits the time for which an engine keeps a closed request.
	longestKeep = 40 * time.Second
)

// course draws the course of a generation.
func (r *replica) course(g port.Generation) mockengine.Course {
	w, draw := r.w, r.w.roll("course "+r.id+" "+textOf(g))
	p, c := w.plan, mockengine.Course{First: upTo(draw, 2*time.Second), Every: upTo(draw, 300*time.Millisecond)}
	if chance(draw, 0.1) {
		c.First = upTo(draw, 40*time.Second)
	}
	if chance(draw, p.repeat) {
		c.Repeats = 1 + draw.IntN(10)
	}
	c.Cached = w.roll("cached " + r.id + " " + textOf(g)).IntN(20)
	switch w.formOf(nameOf(g)) {
	case calls:
		c.Repeats = 0 // a repeated part would be another call
	case reasons:
		c.Reasons = 1 + w.task("reasons "+nameOf(g))
	case texts:
	}
	if chance(draw, p.keep) {
		c.Keeps = upTo(draw, longestKeep)
	}
	if !w.faulty() {
		return c
	}
	if how := r.refusing(); how != "" {
		c.Failure, c.After = how, 0
		return c
	}
	for _, each := range []struct {
		how mockengine.Failure
		p   float64
	}{
		{mockengine.FailBusy, p.busy},
		{mockengine.FailStart, p.start},
		{mockengine.FailReset, p.reset},
		{mockengine.FailEarly, p.early},
		{mockengine.FailError, p.sendError},
		{mockengine.FailStall, p.stall},
	} {
		if chance(draw, each.p) {
			c.Failure, c.After = each.how, draw.IntN(1+draw.IntN(12))
			break
		}
	}
	return c
}

// load makes the engine load its model at random times.
func (r *replica) load() {
	draw := r.w.roll("load " + r.id)
	for range r.w.plan.loads {
		if !r.w.sleep(upTo(draw, 2*time.Minute)) || !r.w.faulty() {
			return
		}
		r.mock.SetLoading(true)
		r.w.sleep(upTo(draw, 45*time.Second))
		r.mock.SetLoading(false)
	}
}

// refuse makes the engine refuse everything at random times: with 429, with 500, or without an
// answer.
func (r *replica) refuse() {
	draw := r.w.roll("refuse " + r.id)
	for range r.w.plan.refusals {
		if !r.w.sleep(upTo(draw, time.Minute)) || !r.w.faulty() {
			return
		}
		r.setRefusing([]mockengine.Failure{mockengine.FailBusy, mockengine.FailStart, mockengine.FailStall}[draw.IntN(3)])
		r.w.sleep(upTo(draw, 100*time.Second))
		r.setRefusing("")
	}
}

func (r *replica) setRefusing(how mockengine.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = how
}

func (r *replica) refusing() mockengine.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refuses
}

// remote is a replica as one process accesses it.
type remote struct {
	*replica
	p *process
}

// Health implements port.Engine.
func (r remote) Health(ctx context.Context) (port.EngineHealth, error) {
	return during(ctx, r.p, "health "+r.id, false, func() (port.EngineHealth, error) { return asked(ctx, r, "health", r.mock.Health) })
}

// Capabilities implements port.Engine.
func (r remote) Capabilities(ctx context.Context) (port.EngineCapabilities, error) {
	return during(ctx, r.p, "capabilities "+r.id, false, func() (port.EngineCapabilities, error) { return asked(ctx, r, "capabilities", r.mock.Capabilities) })
}

// Load implements port.Engine.
func (r remote) Load(ctx context.Context) (port.EngineLoad, error) {
	return during(ctx, r.p, "load "+r.id, false, func() (port.EngineLoad, error) { return asked(ctx, r, "load", r.mock.Load) })
}

// asked makes a status call to an engine. An engine that refuses everything may not answer.
func asked[T any](ctx context.Context, r remote, what string, do func(context.Context) (T, error)) (answer T, err error) {
	if r.refusing() != "" && r.w.faulty() && chance(r.w.roll(r.p.name+" silent "+what+" "+r.id), r.w.plan.silent) {
		<-ctx.Done()
		return answer, ctx.Err()
	}
	return do(ctx)
}

// Generate implements port.Engine.
func (r remote) Generate(ctx context.Context, g port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	return request(ctx, r, "generate "+textOf(g), func() (port.GenerationEnd, error) {
		return r.mock.Generate(ctx, g, func(piece port.Piece) error {
			if r.p.dead.Load() {
				return errKilled
			}
			return each(piece)
		})
	})
}

// Embed implements port.Engine.
func (r remote) Embed(ctx context.Context, e port.Embedding) (port.Embedded, error) {
	return request(ctx, r, "embed "+e.Inputs[0], func() (port.Embedded, error) { return r.mock.Embed(ctx, e) })
}

// Rerank implements port.Engine.
func (r remote) Rerank(ctx context.Context, q port.Reranking) (port.Ranked, error) {
	return request(ctx, r, "rerank "+q.Query, func() (port.Ranked, error) { return r.mock.Rerank(ctx, q) })
}

// request makes a request to the engine. The process can be killed before and after it.
func request[T any](ctx context.Context, r remote, what string, do func() (T, error)) (answer T, err error) {
	var none T
	p, w := r.p, r.w
	draw := w.roll(p.name + what)
	if p.pause(ctx, upTo(draw, 5*time.Millisecond)) != nil || p.maybeKill(draw, what) {
		return none, fault.New(fault.PoolUnavailable, "the engine does not answer")
	}
	w.count(func(o *Outcome) { o.Requests++ })
	r.begin(p)
	began, ended := bubble.Now(), w.asks(asking{p, w.asksOf(r.id, strings.Fields(what)[1])})
	answer, err = do()
	ended()
	w.measured(strings.Fields(what)[1], bubble.Now().Sub(began))
	r.end(ctx, p)
	if p.maybeKill(draw, "after "+what) {
		return none, errKilled
	}
	return answer, err
}

// measured adds the time of a request of a task.
func (w *world) measured(name string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.generating[name] += d
}

// begin records a request and checks that the process may send it.
func (r remote) begin(p *process) {
	r.mu.Lock()
	r.open[p]++
	open, closed := r.open[p], r.closed[p]
	r.mu.Unlock()
	if most := r.w.place.Slots; open > most {
		r.w.fail("%s has %d requests at %s, which has %d slots", p.name, open, r.id, most)
	}
	since := bubble.Now().Sub(closed)
	if !closed.IsZero() && since > notices && since < rests && r.w.plan.reliable() && !r.w.deployed() {
		r.w.fail("%s sends a request to %s, which keeps the one that was closed %s ago", p.name, r.id, since)
	}
}

// end records the end of a request, and whether the engine keeps it.
func (r remote) end(ctx context.Context, p *process) {
	r.mu.Lock()
	r.open[p]--
	r.mu.Unlock()
	load, err := r.mock.Load(context.WithoutCancel(ctx))
	if ctx.Err() == nil || err != nil || p.dead.Load() {
		return
	}
	at := bubble.Now()
	if r.kept(*load.Running) <= 0 {
		return
	}
	r.w.count(func(o *Outcome) { o.Kept++ })
	if r.w.place.Slots > 1 { // requests of other tasks can hide it
		return
	}
	r.w.rest.Go(func() {
		if !r.w.sleep(notices) {
			return
		}
		if load, err := r.mock.Load(r.w.ctx); err == nil && r.kept(*load.Running) > 0 {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.closed[p] = at
		}
	})
}

// kept returns how many of the running requests are not open in any process.
func (r *replica) kept(running int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, open := range r.open {
		running -= open
	}
	return running
}
