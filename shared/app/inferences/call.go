package inferences

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// cancelTime is the time limit for the cancel of a task whose caller has disconnected.
const cancelTime = 10 * time.Second

// Call accepts a task and delivers its answer: it calls begin with the accepted task, and then each
// with its events, as Follow does. If the caller disconnects before the last event (ctx ends, or
// begin or each returns an error), Call cancels the task, unless another caller or reader in this
// process follows it. It does not cancel if the process stops: the next process continues the task.
// If the task of the idempotency key was cancelled in this way, Call accepts another task. Call empties
// the request of in, so that its memory is free while it waits. Faults
// are those of Create before the call of begin, and those of Follow after it.
func (s *Inference) Call(ctx context.Context, in *NewTask, begin func(Accepted) error, each func([]inference.Event) error) (err error) {
	of, err := s.beginCall(ctx, in, begin)
	if !of.entered {
		return err
	}
	defer func() { s.endCall(ctx, in, of, err) }()
	if err != nil {
		return err
	}
	return s.follow(ctx, of, inference.EventID{}, each)
}

// beginCall accepts the task of a caller, counts the caller among its readers, and calls
// begin.
func (s *Inference) beginCall(ctx context.Context, in *NewTask, begin func(Accepted) error) (*streamFollower, error) {
	accepted, of, err := s.join(ctx, *in)
	if err != nil {
		return &of, err
	}
	in.Request, in.stored = inference.Request{}, inference.Stored{} // the wait for the answer needs no memory for it
	return &of, begin(accepted)
}

// endCall removes the caller from the readers of the task. err is nil after the last event. If
// err is not nil and no other reader is left, endCall cancels the task, unless the process
// stops. An answer that is not to be stored is discarded with its last reader.
func (s *Inference) endCall(ctx context.Context, in *NewTask, of *streamFollower, err error) {
	if err == nil || s.stopped() {
		if s.readers.leave(of.ref) && err == nil && in.Unstored {
			s.discardUnstored(ctx, of)
		}
	} else if done := s.readers.abandon(of.ref); done != nil {
		s.abandon(ctx, in.Identity, of)
		if in.Unstored {
			s.discardUnstored(ctx, of)
		}
		done()
	}
}

// discardUnstored lets the dispatcher delete an answer that is not to be stored. If the commit
// fails, the sweep deletes it after its deadline.
func (s *Inference) discardUnstored(ctx context.Context, of *streamFollower) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	r, err := s.store.Load(ctx, of.ref)
	if err == nil {
		_, err = s.runs.Apply(ctx, r, run.AnswerDiscarded{})
	}
	if err != nil {
		s.log.WarnContext(ctx, "cannot discard the answer of an inference task; it is deleted after its deadline", "task_id", of.taskID, "error", err.Error())
	}
}

// join accepts the task of a caller and counts the caller among its readers. If the task of the
// key was abandoned, it accepts another one.
func (s *Inference) join(ctx context.Context, in NewTask) (accepted Accepted, of streamFollower, err error) {
	in.waits = true
	for {
		if err := ctx.Err(); err != nil {
			return accepted, of, err
		}
		// A caller that disconnects meanwhile must not leave a task that it does not know.
		if accepted, err = s.Create(context.WithoutCancel(ctx), in); err != nil {
			return accepted, of, err
		}
		of = readerOf(accepted.Run)
		if err := s.enter(ctx, &of); err != nil {
			return accepted, of, err
		}
		if !accepted.Existing {
			of.createdAt = accepted.Run.CreatedAt
			return accepted, of, nil
		}
		now, err := s.store.Load(ctx, of.ref) // its callers may have disconnected since then
		if err == nil && !wasAbandoned(now) {
			if !now.Discarded && !now.AnswerDeleted {
				return accepted, of, nil
			}
			err = answer.Deleted()
		}
		s.readers.leave(of.ref)
		of.entered = false
		if err != nil {
			return accepted, of, fmt.Errorf("cannot continue the task of the key: %w", err)
		}
		in.IdempotencyKey = "after:" + of.taskID
	}
}

// wasAbandoned reports whether a task was cancelled because its callers had disconnected.
func wasAbandoned(r run.Run) bool {
	return r.Cancel != nil && r.Cancel.Reason == run.ReasonDisconnected && r.State != run.Completed
}

// abandon cancels the task of a caller that has disconnected.
func (s *Inference) abandon(ctx context.Context, who port.Identity, of *streamFollower) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	if _, err := s.Cancel(ctx, who, of.taskID, run.ReasonDisconnected); err != nil {
		s.log.WarnContext(ctx, "cannot cancel an inference task whose caller has disconnected", "task_id", of.taskID, "error", err.Error())
	}
}

// Task returns an inference task of the caller's tenant whose answer was not discarded. Fault:
// NotFound.
func (s *Inference) Task(ctx context.Context, who port.Identity, taskID string) (run.Run, error) {
	r, err := s.runs.Find(ctx, who, taskID)
	if err == nil && (r.Work.Inference == nil || r.HidesAnswer()) {
		return run.Run{}, hidden()
	}
	return r, err
}

// hidden is the fault of a task whose answer cannot be read.
func hidden() error { return fault.New(fault.NotFound, "no such run, or it has expired") }

// Ended reports whether the stream of a task has, or before its expiry had, its last event.
func (s *Inference) Ended(ctx context.Context, r run.Run) (bool, error) {
	if r.State.Terminal() {
		return true, nil
	}
	_, state, err := s.answers.Read(ctx, r)
	return state.Ended, err
}

// Discard cancels a task that has not ended, and discards its answer: Task no longer returns the task,
// and the dispatcher deletes its prompt, its stream and its transcript. The usage stays. Fault:
// NotFound.
func (s *Inference) Discard(ctx context.Context, who port.Identity, taskID string) error {
	r, err := s.Task(ctx, who, taskID)
	if err != nil {
		return err
	}
	if !r.State.Terminal() {
		if _, err := s.Cancel(ctx, who, taskID, "its answer was deleted"); err != nil && !fault.Is(err, fault.TaskAlreadyTerminal) {
			return err
		}
	}
	if r, err = s.store.Load(ctx, r.Ref()); err != nil {
		return err
	}
	_, err = s.runs.Apply(ctx, r, run.AnswerDiscarded{})
	return err
}

// ServedModel is a model that pools serve. Since is the time at which the first of these pools
// was created.
type ServedModel struct {
	ID    string
	Since time.Time
}

// Served returns the models that the pools of the tenant serve, except retired ones, in the
// order of the pools.
func (s *offers) Served(ctx context.Context, who port.Identity) ([]ServedModel, error) {
	var found []ServedModel
	at := map[string]int{}
	err := s.eachEngine(ctx, who.Tenant, func(p platform.Pool) error {
		if !who.Grant.Allows(p.Engine.Model) || p.Origin != nil && p.Origin.Withdrawn() {
			return nil
		}
		i, known := at[p.Engine.Model]
		if !known {
			at[p.Engine.Model] = len(found)
			found = append(found, ServedModel{ID: p.Engine.Model, Since: p.CreatedAt})
		} else if p.CreatedAt.Before(found[i].Since) {
			found[i].Since = p.CreatedAt
		}
		return nil
	})
	active := found[:0]
	for _, m := range found {
		retired, readErr := s.isRetired(ctx, who.Tenant, m.ID)
		if err = errors.Join(err, readErr); !retired {
			active = append(active, m)
		}
	}
	return active, err
}

// isRetired reports whether the model is retired in the catalog.
func (s *offers) isRetired(ctx context.Context, tenant, id string) (bool, error) {
	v, err := s.models.Model(ctx, port.Identity{Tenant: tenant}, id)
	if fault.Is(err, fault.ModelUnknown) {
		return false, nil
	}
	return v.State == catalog.Retired, err
}

// readers counts the readers of each task in this process. It is safe for concurrent use.
type readers struct {
	mu    sync.Mutex
	tasks map[run.Ref]*readerCount
}

type readerCount struct {
	count int
	// gone is closed after the cancel of the task, because its callers have disconnected; nil
	// while it has readers.
	gone chan struct{}
}

// enter counts a reader. If the callers of the task have disconnected, it waits until the task
// is cancelled. It returns an error only if ctx ends.
func (s *readers) enter(ctx context.Context, ref run.Ref) error {
	for {
		gone := s.tryEnter(ref)
		if gone == nil {
			return nil
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryEnter counts a reader and returns nil, or returns the channel that enter waits for.
func (s *readers) tryEnter(ref run.Ref) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.tasks[ref]
	if known == nil {
		known = &readerCount{}
		s.tasks[ref] = known
	}
	if known.gone != nil {
		return known.gone
	}
	known.count++
	return nil
}

// leave removes a reader that enter has counted. It reports whether it was the last one.
func (s *readers) leave(ref run.Ref) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.tasks[ref]
	if known.count--; known.count > 0 {
		return false
	}
	delete(s.tasks, ref)
	return true
}

// abandon removes a caller that has disconnected. If it was the last reader, no other one
// enters until done is called; otherwise done is nil.
func (s *readers) abandon(ref run.Ref) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.tasks[ref]
	if known.count--; known.count > 0 {
		return nil
	}
	known.gone = make(chan struct{})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.tasks, ref)
		close(known.gone)
	}
}
