package answers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// client submits a request and performs its later actions.
type client struct {
	w    *world
	name string
	draw *rand.Rand
	in   inferences.NewTask
	more more
}

// task is an accepted task from the view of its client. The mutex of the world guards it.
type task struct {
	id, name string
	who      port.Identity
	session  string
	// cancelledAt is the last position of the stream when a cancel was acknowledged; 0 before.
	cancelledAt int64
	// choices is the number of answers. deleted: the client has begun to delete them.
	choices int
	deleted bool
}

func (w *world) newClient(name string) *client {
	c := &client{w: w, name: name, draw: w.roll("client " + name)}
	d := c.draw
	c.in = inferences.NewTask{
		Identity: w.keyed(fmt.Sprintf("project-%d", d.IntN(2))), Model: modelID, Workload: port.WorkloadCompletion, IdempotencyKey: name, Digest: "digest of " + name,
		Request: inference.Request{Prompt: name + strings.Repeat(" word", d.IntN(30))}, MaxTokens: 1 + d.IntN(40), Within: 10*time.Second + upTo(d, longestTask-10*time.Second),
		Priority: spec.Priorities()[d.IntN(3)],
	}
	switch d.IntN(8) {
	case 0:
		c.in.Workload, c.in.Request = port.WorkloadEmbedding, inference.Request{Input: []string{name, "second text"}}
	case 1:
		c.in.Workload, c.in.Request = port.WorkloadRerank, inference.Request{Query: name, Input: []string{"first text", name, "third"}}
	}
	w.route(&c.in, name)
	if c.in.Workload == port.WorkloadCompletion && w.formOf(name) == calls {
		c.in.Request = withTool(name, c.in.Request.Prompt)
	}
	if c.in.Workload == port.WorkloadCompletion {
		c.more = w.moreOf(name)
		c.more.addTo(c)
	}
	if d.IntN(2) == 0 {
		c.in.SessionID = fmt.Sprintf("session-%d", d.IntN(3))
	}
	return c
}

// run runs the client.
func (c *client) run() {
	w := c.w
	w.sleep(upTo(c.draw, w.arrivals))
	var waits sync.WaitGroup
	if chance(c.draw, w.plan.waits) {
		c.wait(&waits)
		waits.Wait()
		return
	}
	t := c.submit()
	if t == nil {
		return
	}
	c.follow(t, &waits)
	if c.more.deleted {
		w.discard(w.roll("discard "+c.name), t)
		waits.Wait()
		return
	}
	if chance(c.draw, w.plan.cancels) {
		draw := w.roll("cancel " + c.name)
		waits.Go(func() {
			w.sleep(upTo(draw, moments[draw.IntN(len(moments))]))
			w.cancel(draw, t)
		})
	}
	if c.in.SessionID != "" && c.draw.IntN(10) == 0 {
		draw := w.roll("delete " + c.name)
		waits.Go(func() { w.deleteSession(draw, c.in.SessionID) })
	}
	for chance(c.draw, w.plan.again) {
		w.sleep(upTo(c.draw, time.Minute))
		if other := c.submit(); other != t && w.ctx.Err() == nil {
			w.fail("%s was accepted as %s, and refused or accepted as another task with the same key", c.name, t.id)
		}
	}
	waits.Wait()
}

// follow starts readers of the stream of a task.
func (c *client) follow(t *task, waits *sync.WaitGroup) {
	for i := range 1 + c.draw.IntN(3) {
		r := &reader{w: c.w, task: t, draw: c.w.roll(fmt.Sprintf("reader %d of %s", i, c.name))}
		waits.Go(r.run)
	}
}

// submit repeats the request until it is answered. It returns nil if the request is refused.
func (c *client) submit() *task {
	for c.w.ctx.Err() == nil {
		var accepted inferences.Accepted
		err := c.w.once(c.draw, func(ctx context.Context, p *process) (err error) {
			accepted, err = p.tasks.Create(ctx, c.in)
			return err
		})
		if err == nil {
			return c.accepted(accepted.Run)
		}
		if c.refused(err) {
			return nil
		}
		c.w.sleep(upTo(c.draw, 5*time.Second))
	}
	return nil
}

// refused reports whether an answer to the request is final. Some refusals are retried later.
func (c *client) refused(err error) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	c.w.note("%s: %v", c.name, err)
	switch {
	case !ok || f.Code == fault.Unavailable:
		return false
	case f.Code == fault.Internal, f.Code == fault.InvalidRequest, f.Code == fault.IdempotencyMismatch:
		c.w.fail("%s is refused: %v", c.name, err)
	case f.Code == fault.AdmissionReject, f.Code == fault.Throttled, f.Code == fault.QueueFull, f.Code == fault.PoolUnavailable:
		if c.draw.IntN(4) > 0 {
			return false
		}
	}
	c.w.count(func(o *Outcome) { o.Refused++ })
	return true
}

// accepted records the task of a request. Repeated requests must return the same task.
func (c *client) accepted(r run.Run) *task {
	w := c.w
	w.mu.Lock()
	known := w.tasks[c.name]
	if known == nil {
		known = &task{id: r.TaskID, name: c.name, who: c.in.Identity, session: c.in.SessionID, choices: max(c.more.choices, 1)}
		w.tasks[c.name] = known
		w.outcome.Tasks++
	}
	w.mu.Unlock()
	w.note("%s is accepted as %s", c.name, r.TaskID)
	if known.id != r.TaskID {
		w.fail("%s is accepted as %s and as %s", c.name, known.id, r.TaskID)
	}
	return known
}

// moments are upper limits for the time after which a client leaves or cancels: while the task
// is stored, is queued, waits for a replica, or is answered.
var moments = []time.Duration{50 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, time.Minute}

// errHungUp ends the call of a caller that disconnects.
var errHungUp = errors.New("the caller has gone")

// wait submits the request and waits for its answer on the same connection. A caller that
// leaves has cancelled its task, unless its call was interrupted or the process was killed. It
// then submits the request again to read the answer.
func (c *client) wait(waits *sync.WaitGroup) {
	var got *task
	hangsUp, leaves := chance(c.draw, 0.5), chance(c.draw, c.w.plan.leaves)
	first := &reader{w: c.w, draw: c.w.roll("caller " + c.name), patient: !hangsUp}
	err := c.w.once(c.draw, func(ctx context.Context, p *process) error {
		if leaves {
			left, leave := context.WithCancel(ctx)
			timer := time.AfterFunc(upTo(c.draw, moments[c.draw.IntN(len(moments))]), leave)
			ctx = left
			defer timer.Stop()
			defer leave()
		}
		return p.tasks.Call(ctx, &c.in, func(a inferences.Accepted) error {
			got = c.accepted(a.Run)
			first.task = got
			return nil
		}, func(events []inference.Event) error {
			if p.dead.Load() {
				return errKilled
			}
			for _, e := range events {
				if first.got(e); hangsUp && first.events > 2 {
					return errHungUp
				}
			}
			return nil
		})
	})
	c.w.note("%s waited: %v", c.name, err)
	t := got
	if leaves && t != nil && !first.ended && c.w.plan.reliable() {
		c.w.checkLeft(t)
	}
	if t == nil {
		if err != nil && c.refused(err) && !errors.Is(err, errKilled) {
			return
		}
		t = c.submit()
	}
	if t != nil {
		c.follow(t, waits)
	}
}

// checkLeft checks that a task has ended or has a cancel request after its only caller left.
func (w *world) checkLeft(t *task) {
	for _, r := range w.stored(w.ctx) {
		if r.TaskID == t.id && r.Cancel == nil && !r.State.Terminal() {
			w.fail("the only caller of %s has left, and it is %s without a cancel request", t.id, r.State)
		}
	}
}

// cancel cancels a task and retries until the call is answered.
func (w *world) cancel(draw *rand.Rand, t *task) {
	for w.ctx.Err() == nil {
		err := w.once(draw, func(ctx context.Context, p *process) error {
			_, err := p.tasks.Cancel(ctx, t.who, t.id, "enough")
			return err
		})
		w.note("cancel of %s: %v", t.name, err)
		if fault.Is(err, fault.TaskAlreadyTerminal) {
			return
		}
		if err == nil {
			w.cancelled(t)
			return
		}
		w.sleep(upTo(draw, 5*time.Second))
	}
}

// cancelled checks that an acknowledged cancel has ended the stream or was too late.
func (w *world) cancelled(t *task) {
	head, err := w.raw.feed.Head(w.ctx, inference.StreamOf(tenant, t.id))
	if err != nil {
		return // the world has ended
	}
	state, err := inference.DecodeState(head.State)
	r, lost := w.raw.store.Find(w.ctx, tenant, t.id)
	if lost != nil {
		return
	}
	// An attempt that failed before ends the stream when its slot is free.
	if err != nil || !state.Ended && r.State != run.Terminating {
		w.fail("the cancel of %s is acknowledged, and its stream has no end: %+v, %v; the run is %s", t.id, state, err, r.State)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.Cancels++
	if t.cancelledAt == 0 {
		if t.cancelledAt = head.Newest; !state.Ended {
			t.cancelledAt++
		}
	}
}

// deleteSession deletes a session.
func (w *world) deleteSession(draw *rand.Rand, id string) {
	w.sleep(upTo(draw, time.Minute))
	w.call(draw, "delete of "+budget.SessionScope(id), func(ctx context.Context, p *process) error {
		err := p.system.Budgets.DeleteSession(ctx, identity(""), id)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	})
}
