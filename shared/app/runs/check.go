package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// constraints reads what decides whether a run may start: the newest definition of its job, the
// earlier runs of the job, and the slots and queues of the job and the key. It writes nothing.
type constraints struct {
	*Records
	policy spec.Policy
}

// evaluate evaluates all constraints of a run and commits the result, with a slot of the job if
// all are met. A missing slot is a violation. It may be repeated; the hook is then called
// again.
func (s *Lifecycle) evaluate(ctx context.Context, hooks Hooks, r run.Run, in StepInput) (run.Run, error) {
	violations, err := s.check(ctx, hooks, r)
	if err != nil {
		return r, err
	}
	newest, err := s.jobOf(ctx, r) // after the hook, which may take long
	if err != nil {
		return r, err
	}
	limit := currentLimit(r, newest)
	f := r.Evaluation(violations, limit)
	if len(violations) > 0 && limit > 0 && r.JobSlot.State != platform.SlotHeld {
		// A run that violates another constraint takes no slot, not even for a moment, because
		// that would block other runs.
		full, err := s.noFreeJobSlot(ctx, r, limit)
		if err != nil {
			return r, err
		}
		if full {
			f.Slots = limit
			f = r.WithoutSlot(f, limit, s.now())
		}
	}
	return s.commitCheck(ctx, r, f, limit, in)
}

// commitCheck commits an evaluation with a slot of the job, or with the violation that no slot
// is free. Free slots are granted to the queued runs first.
func (s *Lifecycle) commitCheck(ctx context.Context, r run.Run, f run.Checked, limit int, in StepInput) (run.Run, error) {
	pool := platform.JobPool(r.JobID)
	for filled := false; ; {
		after, err := s.applyTo(ctx, r, in.visited(constantFact(f)))
		if missing, none := errors.AsType[*port.NoSlot](err); !none || missing.Pool != pool {
			return after, err
		}
		full, err := s.noFreeJobSlot(ctx, r, f.Slots)
		switch {
		case err != nil:
			return r, err
		case full || filled:
			f = r.WithoutSlot(f, limit, s.now())
		default:
			s.fillAll(ctx, r.Tenant, pool)
		}
		filled = !full && !filled
	}
}

// noFreeJobSlot reports whether the run's job has at least as many holders and queued runs as
// slots.
func (s *constraints) noFreeJobSlot(ctx context.Context, r run.Run, slots int) (bool, error) {
	pool := platform.JobPool(r.JobID)
	holders, err := s.store.Holders(ctx, r.Tenant, pool, slots)
	if err != nil {
		return false, fmt.Errorf("cannot read the slots of job %s: %w", r.JobID, err)
	}
	queued, err := s.store.Queue(ctx, r.Tenant, pool, slots)
	if err != nil {
		return false, fmt.Errorf("cannot read the queue of job %s: %w", r.JobID, err)
	}
	return len(holders)+len(queued) >= slots, nil
}

// jobOf returns the newest definition of the run's job; nil if no constraint of the run needs
// it, or if the job was deleted.
func (s *constraints) jobOf(ctx context.Context, r run.Run) (*job.Job, error) {
	c := r.Constraints
	if r.JobID == "" || c == nil || c.MaxConcurrentRuns == 0 && !c.RequirePreviousSuccess {
		return nil, nil
	}
	return s.loadJob(ctx, r)
}

// loadJob returns the newest definition of the run's job; nil if the job was deleted.
func (s *constraints) loadJob(ctx context.Context, r run.Run) (*job.Job, error) {
	j, err := s.store.LoadJob(ctx, r.Tenant, r.JobID)
	if errors.Is(err, port.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read job %s: %w", r.JobID, err)
	}
	if !j.OwnsVersion(r.JobVersion) {
		return nil, nil // another job has the id now
	}
	return &j, nil
}

// currentLimit returns the maxConcurrentRuns of the newest definition, or that of the run if
// the job was deleted. It returns 0, no limit, for a run whose own definition has no limit.
func currentLimit(r run.Run, newest *job.Job) int {
	switch {
	case r.Constraints == nil || r.Constraints.MaxConcurrentRuns == 0:
		return 0
	case newest == nil:
		return r.Constraints.MaxConcurrentRuns
	}
	return newest.Definition.MaxConcurrentRuns()
}

// jobLimit returns the number of slots of the job of which the run takes one; 0 if it needs no
// slot.
func (s *constraints) jobLimit(ctx context.Context, r run.Run) (int, error) {
	newest, err := s.jobOf(ctx, r)
	return r.JobLimit(currentLimit(r, newest)), err
}

// check evaluates every constraint of the run except the job's slot, which the commit takes. It
// calls the hook first. A hook may take half a minute, and the other constraints must hold when
// the run starts.
func (s *constraints) check(ctx context.Context, hooks Hooks, r run.Run) (violations []spec.ConstraintViolation, err error) {
	c := r.Constraints
	if c == nil {
		return nil, nil
	}
	refused, err := s.askBefore(ctx, hooks, r)
	if err != nil {
		return nil, err
	}
	if c.RequirePreviousSuccess && r.JobID != "" {
		newest, err := s.jobOf(ctx, r)
		if err != nil {
			return nil, err
		}
		v, violated, err := s.checkPrevious(ctx, r, newest)
		if err != nil {
			return nil, err
		}
		if violated {
			violations = append(violations, v)
		}
	}
	if v, late := r.Lateness(s.now()); late {
		violations = append(violations, v)
	}
	return append(violations, refused...), nil
}

// askBefore calls the hook before the run, if there is one, and returns its violation.
func (s *constraints) askBefore(ctx context.Context, hooks Hooks, r run.Run) (refused []spec.ConstraintViolation, err error) {
	hook := r.Constraints.PreRunHook
	if hook == nil {
		return nil, nil
	}
	answer, err := hooks.Ask(ctx, r, *hook, spec.PreRunHook)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the hook: %w", err)
	}
	v, violated := hook.Violation(spec.PreRunHook, answer, s.now())
	switch {
	case violated:
		return []spec.ConstraintViolation{v}, nil
	case answer.Unavailable:
		s.warn(ctx, r, "the hook before the run cannot be reached; the job allows that", errors.New(answer.Detail))
	}
	return nil, nil
}

// checkPrevious evaluates requirePreviousSuccess. If the record of the previous run was
// deleted, it uses the stored last result of the job.
func (s *constraints) checkPrevious(ctx context.Context, r run.Run, newest *job.Job) (v spec.ConstraintViolation, violated bool, err error) {
	last, err := s.store.LastResult(ctx, r.Tenant, r.JobID)
	if err != nil && !isNotFound(err) {
		return v, false, fmt.Errorf("cannot read the last result of job %s: %w", r.JobID, err)
	}
	previous, err := s.previous(ctx, r, newest, last.RunID)
	switch {
	case err != nil:
		return v, false, err
	case previous == nil && !last.Success && last.RunID != "" && !cleared(newest, last.EndedAt):
		return spec.ConstraintViolation{Constraint: spec.RequirePreviousSuccess, At: s.now(), Message: last.Unsuccessful()}, true, nil
	case previous == nil, previous.State.Terminal() && cleared(newest, previous.EndedAt):
		return v, false, nil
	}
	v, violated = run.PreviousViolation(*previous, s.now())
	return v, violated, nil
}

// cleared reports whether a client has cleared the results of the runs that ended by a time.
func cleared(newest *job.Job, endedAt time.Time) bool {
	return newest != nil && !newest.ClearedAt.Before(endedAt)
}

// previousRuns bounds the search for the previous run of a job. A run that was planned ahead is
// listed by its creation, so the search does not end with the first run that it finds.
const previousRuns = 64

// previous returns the newest run of the job that is older than r and was neither skipped nor
// replaced. It ignores the ended runs of a deleted job with the same id. It returns nil if the
// newest previousRuns runs have no such run. lastID is the run that ended last, which the list
// may miss.
func (s *constraints) previous(ctx context.Context, r run.Run, newest *job.Job, lastID string) (*run.Run, error) {
	var best *run.Run
	consider := func(other run.Run) {
		ofDeleted := newest != nil && other.State.Terminal() && !newest.OwnsVersion(other.JobVersion)
		if other.ID != r.ID && other.Older(r) && !other.IgnoredAsPrevious() && !ofDeleted && (best == nil || best.Older(other)) {
			best = &other
		}
	}
	if lastID != "" {
		last, err := s.store.Load(ctx, run.Ref{Tenant: r.Tenant, ID: lastID})
		if err == nil {
			consider(last)
		} else if !isNotFound(err) {
			return nil, fmt.Errorf("cannot read run %s: %w", lastID, err)
		}
	}
	runs, _, err := s.store.List(ctx, r.Tenant, port.Page{JobID: r.JobID, Limit: previousRuns})
	if err != nil {
		return nil, fmt.Errorf("cannot list the runs of job %s: %w", r.JobID, err)
	}
	for _, other := range runs {
		consider(other)
	}
	return best, nil
}
