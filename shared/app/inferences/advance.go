package inferences

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// startAdvance calls Advance in a goroutine of the dispatcher, and retries it after a failure.
func (s *Dispatcher) startAdvance(ref run.Ref) {
	s.start(func(ctx context.Context) {
		s.retryAdvance(ctx, ref, s.Advance(ctx, ref))
	})
}

// advanceTries is the maximum number of retries of Advance. The delay before a retry doubles
// from firstRetry to slowestRetry.
const (
	advanceTries = 8
	firstRetry   = 500 * time.Millisecond
	slowestRetry = 10 * time.Second
)

// retryAdvance retries Advance, which has failed with err, so that the run does not keep its
// slot until the next sweep. If another goroutine retries it already, that one retries once
// more.
func (s *Dispatcher) retryAdvance(ctx context.Context, ref run.Ref, err error) {
	if err == nil || ctx.Err() != nil || !s.repeat.begin(ref) {
		return
	}
	for n := range advanceTries {
		s.log.WarnContext(ctx, "cannot continue an inference task; it is tried again", "run_id", ref.ID, "error", err.Error())
		if clock.Sleep(ctx, s.clock, min(firstRetry<<n, slowestRetry)) != nil {
			break
		}
		if err = s.Advance(ctx, ref); ctx.Err() != nil || err == nil && s.repeat.end(ref, false) {
			break
		}
		if err == nil {
			err = errRepeated
		}
	}
	s.repeat.end(ref, true)
}

// errRepeated: another call of Advance has failed meanwhile.
var errRepeated = errors.New("another step of the task has failed meanwhile")

// repeats are the runs for which Advance is retried. It is safe for concurrent use.
type repeats struct {
	mu sync.Mutex
	// runs has true for a run for which Advance has failed once more.
	runs map[run.Ref]bool
}

// begin records that Advance is retried for a run. It returns false if another goroutine
// retries it already.
func (s *repeats) begin(ref run.Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.runs[ref]
	s.runs[ref] = known
	return !known
}

// end records that Advance is no longer retried for a run. It returns false if Advance
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

// Resume starts Advance for an overdue run.
func (s *Dispatcher) Resume(_ context.Context, r run.Run) { s.startAdvance(r.Ref()) }

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
