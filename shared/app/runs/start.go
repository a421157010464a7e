package runs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// unknownInterval is the interval of creations on a platform that throttles them and documents
// no limit.
const unknownInterval = time.Second

// places returns the apps of the runner with their intervals, and the app that a
// launch of the run's attempt uses.
func (s *Launches) places(r run.Run) (apps []fleet.StartPace, app string) {
	where := r.Attempt.Place()
	limits, ok := s.runner.(port.StartLimits)
	if ok {
		apps = limits.StartLimits(where)
	}
	switch {
	case len(apps) == 0:
		return []fleet.StartPace{{Interval: unknownInterval}}, ""
	case r.Attempt.App != "":
		return apps, r.Attempt.App
	}
	return apps, limits.AppOf(where, r.Attempt.MachineName)
}

// awaitPermit waits until the start that a run was granted is permitted, and then grants the
// next start. A run without a granted start takes a token of the platform's limit. If there is
// no token or the limiter is closed, its start is deferred, because it would overtake queued runs.
// The start of an attempt that may already have a machine is not deferred. permitted is false
// if the attempt needs no create call now.
func (s *Launches) awaitPermit(ctx context.Context, r run.Run) (after run.Run, permitted bool, err error) {
	after, permitted, err = s.awaitPermitOfPool(ctx, r)
	if err != nil || !permitted || after.Attempt.MaybeCreated {
		return after, permitted, err
	}
	return s.takeOfApp(ctx, after)
}

// takeOfApp takes a token of the app of a permitted start, because other pools may use the same
// app. Without a token it defers the start and delays the starts of the app in this pool until
// the next token.
func (s *Launches) takeOfApp(ctx context.Context, r run.Run) (after run.Run, permitted bool, err error) {
	apps, app := s.places(r)
	i := slices.IndexFunc(apps, func(p fleet.StartPace) bool { return p.App == app })
	if i < 0 || app == "" {
		return r, true, nil
	}
	wait, err := capacity.TakeToken(ctx, s.store, apps[i], s.now())
	if err != nil || wait == 0 {
		return r, err == nil, err
	}
	at := s.now().Add(wait)
	s.changeLimiter(ctx, r, func(g fleet.StartLimiter) (fleet.StartLimiter, bool) { return g.NotBefore(app, at) })
	after, err = s.notStarted(ctx, r, run.StartDeferred{Attempt: r.Attempt.Number})
	return after, false, err
}

// awaitPermitOfPool is awaitPermit for the limits of the run's pool alone.
func (s *Launches) awaitPermitOfPool(ctx context.Context, r run.Run) (after run.Run, permitted bool, err error) {
	if !r.Attempt.StartAt.IsZero() {
		return s.awaitStart(ctx, r)
	}
	if r.Attempt.MaybeCreated {
		return r, true, nil
	}
	apps, app := s.places(r)
	for range permitTries {
		limiter, err := s.store.StartLimiter(ctx, r.Slot.Pool)
		if err != nil {
			return r, false, err
		}
		taken, changed, limited, ok := limiter.Take(apps, s.now())
		switch {
		case !limited && !limiter.Closed(app, s.now()):
			return r, true, nil
		case !ok:
			after, err = s.notStarted(ctx, r, run.StartDeferred{Attempt: r.Attempt.Number})
			return after, false, err
		}
		d, err := run.Decide(r, run.StartPermitted{Attempt: r.Attempt.Number, App: taken}, s.now())
		if err == nil {
			err = s.write(ctx, []run.Decision{d}, &changed)
		}
		if err == nil {
			d.Run.Version++
			return d.Run, true, nil
		}
		if !errors.Is(err, port.ErrConflict) {
			return r, false, err
		}
		if after, err = s.store.Load(ctx, r.Ref()); err != nil || after.Version != r.Version {
			return after, false, err // another call acts for the run
		}
	}
	// Many starts take tokens at the same time: the queue orders them.
	after, err = s.notStarted(ctx, r, run.StartDeferred{Attempt: r.Attempt.Number})
	return after, false, err
}

// permitTries limits how often a start tries to take a token that other starts take first. It
// thereby limits the failed conditional writes. No write is tried after the last token is
// taken.
const permitTries = 5

func (s *Launches) awaitStart(ctx context.Context, r run.Run) (after run.Run, permitted bool, err error) {
	wait := r.Attempt.StartAt.Sub(s.now())
	if wait <= 0 {
		s.fill(ctx, r.Tenant, r.Slot.Pool)
		return r, true, nil
	}
	over, stop := s.clock.NewTimer(wait)
	defer stop()
	select {
	case <-over:
	case <-ctx.Done():
		return r, false, ctx.Err()
	}
	s.fill(ctx, r.Tenant, r.Slot.Pool)
	if after, err = s.store.Load(ctx, r.Ref()); err != nil {
		return r, false, err
	}
	current := after.IsCurrent(r.Attempt.Number) && after.Wait.Generation == r.Wait.Generation
	return after, current && !after.Attempt.Machine.Known(), nil
}

// refused commits a start that the platform refused. If it was throttled, refused first slows
// the pool's starts, and then the run joins the queue.
func (s *Launches) refused(ctx context.Context, r run.Run, why *fault.Fault) (run.Run, error) {
	if why.Code == fault.Throttled {
		apps, app := s.places(r)
		s.changeLimiter(ctx, r, func(g fleet.StartLimiter) (fleet.StartLimiter, bool) {
			return g.Throttled(apps, app, r.Attempt.StartAt, s.now())
		})
	}
	return s.notStarted(ctx, r, run.StartRefused{
		Attempt: r.Attempt.Number, Fault: why, Fallbacks: s.fallbacks(ctx, r), Rand: s.rand(),
	})
}

// notStarted commits that a start created no machine. If the run is queued, it grants the
// permitted starts.
func (s *Launches) notStarted(ctx context.Context, r run.Run, f run.Fact) (run.Run, error) {
	after, err := s.apply(ctx, r.Ref(), constantFact(f))
	if err == nil && after.Queued() {
		s.fill(ctx, r.Tenant, r.Slot.Pool)
	}
	return after, err
}

// startAccepted restores the pace of an app that accepts permitted starts again.
func (s *Launches) startAccepted(ctx context.Context, r run.Run) {
	if r.Attempt.StartAt.IsZero() {
		return
	}
	_, app := s.places(r)
	if s.changeLimiter(ctx, r, func(g fleet.StartLimiter) (fleet.StartLimiter, bool) { return g.Accepted(app, s.now()) }) {
		s.fill(ctx, r.Tenant, r.Slot.Pool)
	}
}

// changeLimiter changes the limiter of the run's pool and reports whether it did. It only logs an
// error, which at worst causes starts that are throttled again.
func (s *Launches) changeLimiter(ctx context.Context, r run.Run, change func(fleet.StartLimiter) (fleet.StartLimiter, bool)) bool {
	for range port.CommitTries {
		limiter, err := s.store.StartLimiter(ctx, r.Slot.Pool)
		if err == nil {
			after, changed := change(limiter)
			if !changed {
				return false
			}
			err = s.store.SetStartLimiter(ctx, after)
		}
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			s.warn(ctx, r, "cannot change the pace of the pool's starts", err)
		}
		return err == nil
	}
	return false
}
