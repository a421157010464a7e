package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// commitTries bounds how often a commit that lost its race is decided again.
// Only a defect loses that often.
const commitTries = 100

// fact makes the fact to decide on from the record as it is now.
type fact func(r run.Run) run.Fact

func is(f run.Fact) fact { return func(run.Run) run.Fact { return f } }

// apply loads the run, decides, commits and acts, again while others commit
// first. It returns the record as it then is, changed or not.
func (s *Service) apply(ctx context.Context, ref run.Ref, f fact) (run.Run, error) {
	r, err := s.ports.Store.Load(ctx, ref)
	if err != nil {
		return run.Run{}, err
	}
	return s.applyTo(ctx, r, f)
}

// applyTo is apply for a record that was just read.
func (s *Service) applyTo(ctx context.Context, r run.Run, f fact) (run.Run, error) {
	for range commitTries {
		d, err := run.Decide(r, f(r), s.now())
		if err != nil || !d.Changed {
			return r, err
		}
		after, err := s.commit(ctx, d)
		if !errors.Is(err, port.ErrConflict) {
			return after, err
		}
		if r, err = s.ports.Store.Load(ctx, r.Ref()); err != nil {
			return run.Run{}, err
		}
	}
	return run.Run{}, fault.New(fault.Unavailable, "the run is changed by too many at once; try again")
}

// commit writes a decision and acts on it. A slot that it gives back goes to
// the first in line in the same transaction.
func (s *Service) commit(ctx context.Context, d run.Decision) (run.Run, error) {
	grants := d.Lease == run.LeaseRelease
	for range commitTries {
		decisions := []run.Decision{d}
		if grants {
			next, err := s.nextQueued(ctx, d.Run.Tenant, d.Run.Slot.Pool)
			if err != nil {
				return run.Run{}, err
			}
			decisions = append(decisions, next...)
		}
		err := s.write(ctx, decisions)
		conflict, lost := errors.AsType[*port.Conflict](err)
		switch {
		case lost && conflict.Ref != d.Run.Ref():
			continue // the next in line changed; look who it is now
		case len(decisions) > 1 && errors.Is(err, port.ErrNoSlot):
			grants = false // the limit was lowered; the slot is nobody's then
			continue
		case err != nil:
			return run.Run{}, err
		}
		if d.Lease == run.LeaseRelease && len(decisions) == 1 {
			s.fill(ctx, d.Run.Tenant, d.Run.Slot.Pool)
		}
		d.Run.Version++
		return d.Run, nil
	}
	return run.Run{}, fault.New(fault.Unavailable, "the pool's line changes too fast; try again")
}

// write commits decisions together, tells the waiting, and acts.
func (s *Service) write(ctx context.Context, decisions []run.Decision) error {
	writes := make([]port.Write, len(decisions))
	for i, d := range decisions {
		writes[i] = port.WriteOf(d)
	}
	if err := s.ports.Store.Commit(ctx, writes...); err != nil {
		return err
	}
	for _, d := range decisions {
		s.committed(ctx, d)
	}
	return nil
}

// committed is what follows every commit: one log line an event, waiting
// readers, effects.
func (s *Service) committed(ctx context.Context, d run.Decision) {
	for _, e := range d.Events {
		s.logEvent(ctx, d.Run, e)
	}
	s.changes.notify(d.Run.Ref())
	s.act(ctx, d.Run, d.Effects)
}

func (s *Service) logEvent(ctx context.Context, r run.Run, e run.Event) {
	level, attrs := slog.LevelInfo, s.attrs(r)
	attrs = append(attrs, slog.Int("seq", e.Seq), slog.String("from", string(e.From)))
	if e.Message != "" {
		attrs = append(attrs, slog.String("message", e.Message))
	}
	if e.Fault != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("fault", string(e.Fault.Code)))
	}
	s.ports.Log.LogAttrs(ctx, level, string(e.Type), attrs...)
}

func (s *Service) attrs(r run.Run) []slog.Attr {
	return []slog.Attr{
		slog.String("run_id", r.ID), slog.String("task_id", r.TaskID), slog.Int("attempt", r.Attempt.Number),
		slog.String("state", string(r.State)), slog.String("correlation_id", r.CorrelationID),
	}
}

func (s *Service) warn(ctx context.Context, r run.Run, message string, err error) {
	s.ports.Log.LogAttrs(ctx, slog.LevelWarn, message, append(s.attrs(r), slog.String("error", err.Error()))...)
}

// nextInLine decides the grant to the first in line who still wants a slot;
// empty where nobody does.
func (s *Service) nextQueued(ctx context.Context, tenant, pool string) ([]run.Decision, error) {
	queue, err := s.ports.Store.Queue(ctx, tenant, pool, 8)
	if err != nil {
		return nil, fmt.Errorf("cannot read the line of pool %s: %w", pool, err)
	}
	for _, ref := range queue {
		r, err := s.ports.Store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d, err := run.Decide(r, run.Granted{Limit: s.config.MaxMachines}, s.now())
		if err != nil {
			return nil, err
		}
		if d.Changed {
			return []run.Decision{d}, nil
		}
	}
	return nil, nil
}

// fill grants free slots to the line until there is no slot or nobody waits.
// What fails is left to the sweep.
func (s *Service) fill(ctx context.Context, tenant, pool string) {
	for range commitTries {
		next, err := s.nextQueued(ctx, tenant, pool)
		if err == nil && len(next) > 0 {
			err = s.write(ctx, next)
		}
		switch {
		case err == nil && len(next) == 0, errors.Is(err, port.ErrNoSlot):
			return
		case err != nil && !errors.Is(err, port.ErrConflict):
			s.ports.Log.WarnContext(ctx, "cannot fill the pool", "pool", pool, "error", err.Error())
			return
		}
	}
}
