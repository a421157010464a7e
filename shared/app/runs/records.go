package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/watch"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Records reads runs and commits facts that have no effect outside the store.
// Readers of the same Records that wait for a run see its commits at once. It is
// safe for concurrent use.
type Records struct {
	store   port.Store
	clock   clock.Clock
	log     *slog.Logger
	changes *watch.Changes
	// observers receive each commit.
	observers []port.Observer
}

// NewRecords returns the records of a store. Each commit is given to the observers.
func NewRecords(store port.Store, c clock.Clock, log *slog.Logger, observers ...port.Observer) *Records {
	return &Records{store: store, clock: c, log: log, changes: watch.New(), observers: observers}
}

// observedBy returns Records whose commits are also given to an observer.
func (s *Records) observedBy(o port.Observer) *Records {
	observed := *s
	observed.observers = append(slices.Clone(s.observers), o)
	return &observed
}

func (s *Records) now() time.Time { return clock.UTC(s.clock) }

// find reads a task of the caller's tenant.
func (s *Records) find(ctx context.Context, who port.Identity, taskID string) (run.Run, error) {
	r, err := s.store.Find(ctx, who.Tenant, taskID)
	if errors.Is(err, port.ErrNotFound) {
		return run.Run{}, fault.New(fault.NotFound, "no such run, or it has expired")
	}
	if err != nil {
		return run.Run{}, fmt.Errorf("cannot find the task: %w", err)
	}
	return r, nil
}

// errNextAttempt is the error of a call for an attempt that has ended meanwhile. The run has
// another attempt, which the call must not change.
var errNextAttempt = TryAgain{errors.New("the next attempt of the run has begun")}

// reload returns the newest record of a run. The error is errNextAttempt if the run has another
// attempt now.
func (s *Records) reload(ctx context.Context, r run.Run) (run.Run, error) {
	latest, err := s.store.Load(ctx, r.Ref())
	if err == nil && latest.Attempt.Number != r.Attempt.Number {
		return run.Run{}, errNextAttempt
	}
	return latest, err
}

// fact returns the fact to decide for the newest record; nil changes nothing.
type fact func(r run.Run) run.Fact

// constantFact returns the fact f for every record.
func constantFact(f run.Fact) fact { return func(run.Run) run.Fact { return f } }

// applyTo decides a fact about a record that was just read and commits the
// decision. It returns the newest record, changed or not.
func (s *Records) applyTo(ctx context.Context, r run.Run, f fact) (run.Run, error) {
	return s.decide(ctx, r, f, s.commit)
}

// decide decides a fact and commits the decision. It repeats both after a conflict.
func (s *Records) decide(
	ctx context.Context, r run.Run, f fact, commit func(context.Context, run.Decision) (run.Run, error),
) (run.Run, error) {
	for range port.CommitTries {
		what, now := f(r), s.now()
		if what == nil {
			return r, nil
		}
		d, err := run.Decide(r, what, now)
		if err == nil && d.Heartbeat.Close {
			d, err = run.Decide(s.withHeartbeats(ctx, r), what, now)
		}
		if err != nil || !d.Changed {
			return r, err
		}
		after, err := commit(ctx, d)
		if !errors.Is(err, port.ErrConflict) {
			return after, err
		}
		if r, err = s.store.Load(ctx, r.Ref()); err != nil {
			return run.Run{}, err
		}
	}
	return run.Run{}, tooManyChangesOfRun()
}

func tooManyChangesOfRun() error {
	return fault.New(fault.Unavailable, "too many concurrent changes of the run; retry")
}

// withHeartbeats returns the run with the number of heartbeats of its ending attempt. The
// heartbeat item counts them without a write of its own. A heartbeat between this read and the
// commit is not counted.
func (s *Records) withHeartbeats(ctx context.Context, r run.Run) run.Run {
	item, err := s.store.LastHeartbeat(ctx, r.Ref())
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		s.warn(ctx, r, "cannot count the heartbeats of the attempt", err)
	}
	if item.Attempt == r.Attempt.Number {
		r.Tally.Heartbeats += item.Received
	}
	return r
}

// commit writes a decision that changes no slot and has no effects. It returns an error for any
// other decision.
func (s *Records) commit(ctx context.Context, d run.Decision) (run.Run, error) {
	if d.Lease != "" || len(d.Effects) > 0 {
		return run.Run{}, fmt.Errorf("the decision about run %s has effects, want none", d.Run.ID)
	}
	d, undo := withCalls(ctx, d)
	if err := s.write(ctx, []run.Decision{d}, nil); err != nil {
		undo()
		return run.Run{}, err
	}
	d.Run.Version++
	return d.Run, nil
}

// write commits decisions together, with the limiter of the last one, logs their events
// and wakes waiting readers.
func (s *Records) write(ctx context.Context, decisions []run.Decision, limiter *fleet.StartLimiter) error {
	writes := make([]port.Write, len(decisions))
	for i := range decisions {
		writes[i] = port.WriteOf(decisions[i])
	}
	writes[len(writes)-1].Limiter = limiter
	if err := s.store.Commit(ctx, writes...); err != nil {
		return err
	}
	for i := range decisions {
		s.committed(ctx, &decisions[i])
	}
	return nil
}

// committed logs the events of a commit, gives it to the observers and wakes waiting
// readers.
func (s *Records) committed(ctx context.Context, d *run.Decision) {
	r := d.Run
	r.Version++ // as it is stored
	for i := range d.Events {
		s.logEvent(ctx, &r, &d.Events[i])
	}
	for _, o := range s.observers {
		o.Committed(ctx, r, d.Events)
	}
	s.changes.Committed(&r)
}

func (s *Records) logEvent(ctx context.Context, r *run.Run, e *run.Event) {
	level := levelOf(e)
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := append(about.Run(r), slog.Int("seq", e.Seq), slog.String("from", string(e.From)))
	if e.Actor.Scopes != nil { // of a client
		attrs = append(attrs, slog.String("identity", e.Actor.Name()))
	}
	if e.Message != "" {
		attrs = append(attrs, slog.String("message", e.Message))
	}
	if e.Fault != nil {
		attrs = append(attrs, slog.String("fault", string(e.Fault.Code)))
	}
	s.log.LogAttrs(ctx, level, string(e.Type), attrs...)
}

// levelOf returns the log level of an event. The end of a failed run and a failed action are
// errors. Violated constraints, exceeded expected times, zombies and other faults are warnings.
func levelOf(e *run.Event) slog.Level {
	switch {
	case e.Type == run.EventActionFailed, e.Ends() && (e.State == run.Failed || e.State == run.Orphaned):
		return slog.LevelError
	case e.Type == run.EventConstraintViolated, e.Type == run.EventExpectedTimeExceeded, e.Type == run.EventZombieDetected, e.Fault != nil:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

func (s *Records) warn(ctx context.Context, r run.Run, message string, err error) {
	s.log.LogAttrs(ctx, slog.LevelWarn, message, append(about.Run(&r), slog.String("error", err.Error()))...)
}
