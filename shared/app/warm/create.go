package warm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/crew"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// warmWait is how long one sweep waits for the platform to permit creations of warm machines
// of a pool.
const warmWait = 20 * time.Second

// createWarm creates warm machines as far as the platform permits. It stops while runs of the
// pool are queued.
func (s *Machines) createWarm(ctx context.Context, p platform.Pool, keys []platform.WarmKey, failed *crew.Failures) error {
	made := crew.New(s.config.Workers, failed)
	defer made.Wait()
	until := s.now().Add(warmWait)
	for _, key := range keys {
		queued, err := s.store.QueueLength(ctx, p.Tenant, p.ID, 1)
		if err != nil {
			return fmt.Errorf("cannot count the queue of pool %s: %w", p.ID, err)
		}
		if queued > 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		app, ok, err := s.permitWarm(ctx, p, until)
		if err != nil || !ok {
			return err
		}
		now := s.now().UTC().Round(0)
		w := platform.WarmMachine{
			Tenant: p.Tenant, Pool: p.ID, Key: key, Placement: p.Placement,
			Phase: platform.WarmCreating, App: app, CreatedAt: now,
		}
		made.Do(ctx, func(ctx context.Context) error { return s.prepare(ctx, w) })
	}
	return nil
}

// permitWarm takes a token of the platform's limit. It waits for a token until the given time,
// after which ok is false.
func (s *Machines) permitWarm(ctx context.Context, p platform.Pool, until time.Time) (app string, ok bool, err error) {
	var apps []fleet.StartPace
	if limits, ok := s.runner.(port.StartLimits); ok {
		apps = limits.StartLimits(p.Placement)
	}
	for ctx.Err() == nil {
		limiter, err := s.store.StartLimiter(ctx, p.ID)
		if err != nil {
			return "", false, fmt.Errorf("cannot read the pace of the starts of pool %s: %w", p.ID, err)
		}
		app, after, limited, ok := limiter.Take(apps, s.now())
		switch {
		case !limited:
			return "", !limiter.Paced(s.now()), nil
		case ok:
			if err = s.store.SetStartLimiter(ctx, after); err == nil {
				ok, err = s.permitWarmOfApp(ctx, apps, app, until)
				return app, ok, err
			}
			if !errors.Is(err, port.ErrConflict) {
				return "", false, fmt.Errorf("cannot take a token of pool %s: %w", p.ID, err)
			}
			continue
		case limiter.Permit().After(until):
			return "", false, nil
		}
		again, stop := s.clock.NewTimer(max(limiter.Permit().Sub(s.now()), time.Millisecond))
		select {
		case <-again:
		case <-ctx.Done():
		}
		stop()
	}
	return "", false, ctx.Err()
}

// permitWarmOfApp takes a token of the app, which other pools may use too. It waits for a token
// until the given time, after which ok is false.
func (s *Machines) permitWarmOfApp(ctx context.Context, apps []fleet.StartPace, app string, until time.Time) (ok bool, err error) {
	i := slices.IndexFunc(apps, func(p fleet.StartPace) bool { return p.App == app })
	for ctx.Err() == nil {
		wait, err := capacity.TakeToken(ctx, s.store, apps[i], s.now())
		if err != nil {
			return false, fmt.Errorf("cannot take a token of app %s: %w", app, err)
		}
		if wait == 0 || s.now().Add(wait).After(until) {
			return wait == 0, nil
		}
		again, stop := s.clock.NewTimer(wait)
		select {
		case <-again:
		case <-ctx.Done():
		}
		stop()
	}
	return false, ctx.Err()
}

// prepare commits the record of a warm machine and creates the machine. If the result of the
// creation is unknown, the record stays: a sweep finds the machine in the list, or ends the
// record.
func (s *Machines) prepare(ctx context.Context, w platform.WarmMachine) error {
	warm, ok := s.runner.(port.WarmMachines)
	if !ok {
		return nil
	}
	w, err := s.newWarm(ctx, w)
	if err != nil {
		return fmt.Errorf("cannot store a warm machine: %w", err)
	}
	if ok, err := s.hasRoom(ctx, w); err != nil || !ok {
		return errors.Join(err, s.store.DeleteWarm(ctx, w))
	}
	made, err := warm.Prepare(ctx, port.WarmSpec{Placement: w.Placement, Warm: w.Ref(), WarmKey: w.Key, Name: w.Name(), App: w.App})
	if err != nil {
		f := port.StartFault(err)
		s.capacity.Failures.Note(ctx, platform.PoolRef{Tenant: w.Tenant, ID: w.Pool}, s.now(), f)
		if f.Code != fault.Unavailable {
			err = errors.Join(err, s.store.DeleteWarm(ctx, w)) // no machine was created
		}
		return fmt.Errorf("cannot create a warm machine of pool %s: %w", w.Pool, err)
	}
	w.Machine, w.Digest = made.Machine, made.Digest
	if made.Phase == port.MachineEnding {
		w.Phase = platform.WarmReady
	}
	if _, err := s.saveWarm(ctx, w); err != nil && !errors.Is(err, port.ErrConflict) {
		return fmt.Errorf("cannot store a warm machine: %w", err)
	}
	return nil
}

// hasRoom reports whether the pool may have the machine, whose record is stored. Overlapping
// sweeps do not see each other's records when they plan. This check keeps their machines within
// the maximum of the pool.
func (s *Machines) hasRoom(ctx context.Context, w platform.WarmMachine) (bool, error) {
	p, err := s.capacity.Pools.ForRun(ctx, w.Tenant, w.Pool)
	if err != nil {
		return false, err
	}
	have, err := s.store.WarmMachines(ctx, p.Ref())
	if err != nil {
		return false, fmt.Errorf("cannot count the warm machines of pool %s: %w", w.Pool, err)
	}
	return fleet.WarmRoom(p, have), nil
}

// warmIDBytes is the number of random bytes of the id of a warm machine.
const warmIDBytes = 4

// newWarm stores the record of a new machine under an unused id of its time and random bytes.
// Another host may have used the same time and deleted its record.
func (s *Machines) newWarm(ctx context.Context, w platform.WarmMachine) (saved platform.WarmMachine, err error) {
	for range port.CommitTries {
		w.ID = fmt.Sprintf("%x-%s", w.CreatedAt.UnixNano(), s.hex(warmIDBytes))
		if saved, err = s.saveWarm(ctx, w); !errors.Is(err, port.ErrConflict) {
			break
		}
	}
	return saved, err
}
