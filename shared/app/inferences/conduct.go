package inferences

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/answer"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// startConduct calls Conduct in a goroutine of the dispatcher, and retries it after a failure.
func (s *Dispatcher) startConduct(ref run.Ref) {
	s.start(func(ctx context.Context) {
		s.repeatConduct(ctx, ref, s.Conduct(ctx, ref))
	})
}

// conductTries is the maximum number of retries of Conduct. The delay before a retry doubles
// from firstConduct to slowestConduct.
const (
	conductTries   = 8
	firstConduct   = 500 * time.Millisecond
	slowestConduct = 10 * time.Second
)

// repeatConduct retries Conduct, which has failed with err, so that the run does not keep its
// slot until the next sweep. If another goroutine retries it already, that one retries once
// more.
func (s *Dispatcher) repeatConduct(ctx context.Context, ref run.Ref, err error) {
	if err == nil || ctx.Err() != nil || !s.repeat.begin(ref) {
		return
	}
	for n := range conductTries {
		s.log.WarnContext(ctx, "cannot continue an inference task; it is tried again", "run_id", ref.ID, "error", err.Error())
		if clock.Sleep(ctx, s.clock, min(firstConduct<<n, slowestConduct)) != nil {
			break
		}
		if err = s.Conduct(ctx, ref); ctx.Err() != nil || err == nil && s.repeat.end(ref, false) {
			break
		}
		if err == nil {
			err = errRepeated
		}
	}
	s.repeat.end(ref, true)
}

// errRepeated: another call of Conduct has failed meanwhile.
var errRepeated = errors.New("another step of the task has failed meanwhile")

// repeats are the runs for which Conduct is retried. It is safe for concurrent use.
type repeats struct {
	mu sync.Mutex
	// runs has true for a run for which Conduct has failed once more.
	runs map[run.Ref]bool
}

// begin records that Conduct is retried for a run. It returns false if another goroutine
// retries it already.
func (s *repeats) begin(ref run.Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.runs[ref]
	s.runs[ref] = known
	return !known
}

// end records that Conduct is no longer retried for a run. It returns false if Conduct
// has failed in another goroutine meanwhile, unless givenUp.
func (s *repeats) end(ref run.Ref, givenUp bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[ref] && !givenUp {
		s.runs[ref] = false
		return false
	}
	delete(s.runs, ref)
	return true
}

// Resume starts Conduct for an overdue run.
func (s *Dispatcher) Resume(_ context.Context, r run.Run) { s.startConduct(r.Ref()) }

// Conduct advances a run of kind inference, in every state, until it has to wait or has ended.
// It may be called at any time, by any number of processes; a sweep calls it for runs that are
// overdue.
func (s *Dispatcher) Conduct(ctx context.Context, ref run.Ref) error {
	for range conductSteps {
		next, again, err := s.step(ctx, ref)
		if next != nil {
			again, err = s.serve(ctx, next)
		}
		if err != nil || !again {
			return err
		}
	}
	return fault.New(fault.Internal, "the task has not ended after %d steps", conductSteps)
}

// conductSteps limits the steps of one call of Conduct. A run needs fewer: an attempt has at
// most four states, and a task engineAttempts attempts of each kind.
const conductSteps = 64

// step advances a run by one step, or returns the attempt to serve. again reports that the next
// step can follow at once.
func (s *Dispatcher) step(ctx context.Context, ref run.Ref) (next *serving, again bool, err error) {
	r, err := s.store.Load(ctx, ref)
	switch {
	case errors.Is(err, port.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("cannot load the task: %w", err)
	case r.State == run.ContainerCreating && !r.Queued():
		return newServing(r), false, nil
	}
	again, err = s.stepOf(ctx, r)
	return nil, again, err
}

// stepOf advances a run that has no attempt to serve by one step.
func (s *Dispatcher) stepOf(ctx context.Context, r run.Run) (again bool, err error) {
	now := s.now()
	switch {
	case r.State.Terminal():
		return false, s.answers.EnsureEnd(ctx, s.store, r.Ref())
	case r.State == run.Retrying, r.State == run.PreRun:
		after, err := s.runs.Apply(ctx, r, run.Due{})
		return err == nil && after.State == run.Pending, err
	case r.Queued():
		if now.Before(r.QueueBy()) {
			return false, s.postponeCheck(ctx, r)
		}
		_, err = s.runs.Apply(ctx, r, run.Evaluated{Generation: r.Wait.Generation})
		return err == nil, err
	case r.State == run.Pending:
		after, err := s.runs.TakeSlot(ctx, r)
		return err == nil && !after.Queued() && !s.serves(after), err
	case r.State == run.Running:
		return s.advanceRunning(ctx, r)
	case r.State == run.Terminating:
		if s.serves(r) {
			return false, nil
		}
		return true, s.settle(ctx, r, nil)
	}
	return false, nil
}

// postponeCheck postpones the next check of an overdue run.
func (s *Dispatcher) postponeCheck(ctx context.Context, r run.Run) error {
	if now := s.now(); r.Execution.ActBy.IsZero() || now.Before(r.Execution.ActBy) {
		return nil
	}
	_, err := s.runs.Apply(ctx, r, run.ExecutionChecked{Done: true})
	return err
}

// advanceRunning advances a running task that this dispatcher does not serve. The dispatcher of
// the task may be alive, late or lost.
func (s *Dispatcher) advanceRunning(ctx context.Context, r run.Run) (again bool, err error) {
	if s.serves(r) {
		return false, nil
	}
	head, state, err := s.answers.Read(ctx, r)
	if err != nil {
		return false, err
	}
	switch {
	case state.Ended:
		last, err := s.answers.Last(ctx, r, head)
		if err != nil {
			return false, err
		}
		return true, s.commitStreamEnd(ctx, r, last)
	case r.Cancel != nil:
		last, err := s.answers.Conclude(ctx, r, answer.EndOf(r))
		if err != nil {
			return false, err
		}
		return true, s.commitStreamEnd(ctx, r, last)
	case !s.now().Before(r.RunBy()):
		return true, s.fail(ctx, r, fault.New(fault.DeadlineUnmet, "the task had no end after its deadline of %s", r.Work.Inference.Within))
	case s.cfg.Alone && r.Attempt.WorkerID != s.cfg.ID:
		return true, s.fail(ctx, r, fault.New(fault.WorkerReset, "the dispatcher that served the task is gone"))
	case r.Attempt.WorkerID == s.cfg.ID:
		return true, s.fail(ctx, r, fault.New(fault.WorkerReset, "the dispatcher could not store the answer"))
	}
	return false, s.postponeCheck(ctx, r)
}
