package answers

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// reader follows the stream of a task on connections that break. It continues after the last
// event received.
type reader struct {
	w    *world
	task *task
	draw *rand.Rand
	// patient means that the reader does not break connections.
	patient bool

	at      inference.EventID
	events  int
	tokens  int
	results int
	choices int
	// beside are the pieces of reasoning and the parts of calls.
	beside answered
	ended  bool
}

// errCut is the error of a broken connection.
var errCut = errors.New("the connection is cut")

// run follows the stream until its end.
func (r *reader) run() {
	w := r.w
	for w.ctx.Err() == nil && !r.ended {
		w.sleep(upTo(r.draw, []time.Duration{50 * time.Millisecond, 2 * time.Second, 20 * time.Second}[r.draw.IntN(3)]))
		err := r.connect()
		if w.isDeleted(r.task) && (fault.Is(err, fault.NotFound) || fault.Is(err, fault.CursorExpired)) {
			return
		}
		if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code != fault.Unavailable && f.Code != fault.Internal || errors.Is(err, inferences.ErrAllRead) && !r.ended {
			w.fail("a reader of %s behind %s: %v", r.task.id, r.at, err)
			return
		}
	}
	if !r.ended || r.draw.IntN(3) > 0 {
		return
	}
	for w.ctx.Err() == nil { // the stream reports that everything was read
		if err := r.connect(); errors.Is(err, inferences.ErrAllRead) || err == nil || w.isDeleted(r.task) {
			return
		}
		w.sleep(upTo(r.draw, 5*time.Second))
	}
}

// connect follows the stream on one connection.
func (r *reader) connect() error {
	w := r.w
	w.count(func(o *Outcome) { o.Connections++ })
	begun := false
	err := w.once(r.draw, func(ctx context.Context, p *process) error {
		ctx, cut := context.WithCancel(ctx)
		defer cut()
		if w.faulty() && chance(r.draw, w.plan.cuts) {
			timer := time.AfterFunc(upTo(r.draw, 20*time.Second), cut)
			defer timer.Stop()
		}
		return p.tasks.Follow(ctx, r.task.who, r.task.id, r.at, func(run.Run) error { begun = true; return nil }, func(events []inference.Event) error {
			for _, e := range events {
				if p.dead.Load() || !r.patient && w.faulty() && chance(r.draw, w.plan.cuts) {
					return errCut
				}
				r.got(e)
			}
			return nil
		})
	})
	if err == nil && begun && !r.ended && w.ctx.Err() == nil && !w.isDeleted(r.task) {
		w.fail("the stream of %s ended behind %s without a terminal event", r.task.id, r.at)
	}
	return err
}

// got checks an event against the earlier ones.
func (r *reader) got(e inference.Event) {
	w, id := r.w, r.task.id
	if w.isDeleted(r.task) { // its stream may be removed between two events
		return
	}
	w.count(func(o *Outcome) { o.Events++ })
	if e.ID.Position < r.at.Position || e.ID.Position == r.at.Position && e.ID.N <= r.at.N {
		w.fail("a reader of %s got %s behind %s", id, e.ID, r.at)
	}
	if e.ID.Position > r.at.Position && e.ID.N != 1 {
		w.fail("a reader of %s got %s first of its record, behind %s", id, e.ID, r.at)
	}
	if r.ended {
		w.fail("a reader of %s got %s %s behind the terminal event", id, e.Name, e.ID)
	}
	switch data := e.Data.(type) {
	case *inference.Started:
		if r.events > 0 {
			w.fail("a reader of %s got %s as event %d", id, e.Name, r.events+1)
		}
	case inference.Token:
		if data.I != r.tokens {
			w.fail("a reader of %s got token %d at %s as number %d", id, data.I, e.ID, r.tokens)
		}
		r.tokens++
	case inference.Reasoning:
		if data.I != r.beside.reasoning {
			w.fail("a reader of %s got reasoning %d at %s as number %d", id, data.I, e.ID, r.beside.reasoning)
		}
		r.beside.reasoning++
	case port.ToolDelta:
		r.beside.call(data)
	case *inference.ChoiceEnd:
		r.choice(data)
	case *inference.Result:
		if data.Index != r.results {
			w.fail("a reader of %s got result %d at %s as number %d", id, data.Index, e.ID, r.results)
		}
		r.results++
	case *inference.End:
		r.ended = true
		if r.choices != r.task.choices-1 {
			w.fail("a reader of %s got the end after %d answers, want %d", id, r.choices+1, r.task.choices)
		}
		if data.TokensOut != r.tokens+r.beside.tokens() {
			w.fail("a reader of %s got %d tokens, %+v and an end with %d", id, r.tokens, r.beside, data.TokensOut)
		}
		if data.Finish == string(port.FinishTools) && r.beside.arguments != arguments(r.task.name) {
			w.fail("a reader of %s got the call %q, want %s", id, r.beside.arguments, arguments(r.task.name))
		}
		r.checkSettled()
	case inference.Failure:
		r.ended = true
		if data.TokensOut != r.tokens+r.beside.tokens() {
			w.fail("a reader of %s got %d tokens, %+v and an error with %d", id, r.tokens, r.beside, data.TokensOut)
		}
	}
	r.at = e.ID
	r.events++
}

// checkSettled checks that a task holds no budget when a reader has received its end.
func (r *reader) checkSettled() {
	if !r.w.plan.reliable() {
		return
	}
	for _, of := range r.w.stored(context.Background()) {
		if of.TaskID == r.task.id && of.Reserves() {
			r.w.fail("a reader of %s got its end while it holds %+v", of.ID, of.Reservation.Held)
		}
	}
}
