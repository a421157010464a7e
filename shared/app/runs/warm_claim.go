package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// WarmKey returns the key of the warm machines that fit work in a placement.
func (c Config) WarmKey(w spec.Work, where platform.Placement) platform.WarmKey {
	return platform.WarmKey{
		Image: cmp.Or(w.Image, c.Image), CPUs: cmp.Or(w.Resources.CPUs, c.CPUs), MemoryMB: cmp.Or(w.Resources.MemoryMB, c.MemoryMB),
		Region: c.region(w, where),
	}
}

// region returns the region that is tried first: that of the job or, if the pool lists no
// regions, that of the deployment.
func (c Config) region(w spec.Work, where platform.Placement) string {
	if fly := platform.SettingsOf[platform.FlySettings](where); fly != nil && len(fly.Regions) > 0 {
		return w.Resources.Region
	}
	return cmp.Or(w.Resources.Region, c.Region)
}

// A start tries to claim claimTries ready machines of a list, and reads at most claimLists
// lists. Other starts that read the same list claim some of its machines first.
const (
	claimTries = 3
	claimLists = 8
)

// claimWarm claims a warm machine of the run's pool for its attempt. If no machine is ready or
// the store does not answer, the result has no claim, and the attempt creates a machine.
func (s *Launches) claimWarm(ctx context.Context, r run.Run) (run.Run, error) {
	if _, ok := s.runner.(port.WarmMachines); !ok || !r.MayClaim() {
		return r, nil
	}
	p, err := s.pools.ForRun(ctx, r.Tenant, r.Slot.Pool)
	if err != nil || p.Warm == nil {
		return r, nil //nolint:nilerr // the attempt creates a machine
	}
	for range claimLists {
		ready, err := s.claimable(ctx, r, p)
		if err != nil {
			s.warn(ctx, r, "cannot read the warm machines of the pool", err)
			return r, nil
		}
		if len(ready) == 0 {
			return r, nil
		}
		after, lost, err := s.claimOne(ctx, r, ready, p.Recycles())
		if err != nil || !lost {
			return after, err
		}
		r = after
	}
	return r, nil
}

// claimable returns the warm machines of the pool that the attempt can claim.
func (s *Launches) claimable(ctx context.Context, r run.Run, p platform.Pool) (ready []platform.WarmMachine, err error) {
	have, err := s.store.WarmMachines(ctx, p.Ref())
	if err != nil {
		return nil, err
	}
	key, where := s.config.WarmKey(r.Work, r.Attempt.Place()), r.Attempt.Place()
	for _, w := range have {
		if w.Claimable(key, where) {
			ready = append(ready, w)
		}
	}
	return ready, nil
}

// claimOne tries to claim one of the machines, in a random order, so that concurrent starts try
// different ones. recycle reports that the machine can be reused after the attempt. lost reports that
// other starts have claimed them, or that the run has changed and can still claim one.
func (s *Launches) claimOne(ctx context.Context, r run.Run, ready []platform.WarmMachine, recycle bool) (after run.Run, lost bool, err error) {
	for left := min(len(ready), claimTries); left > 0; left-- {
		i := min(int(s.rand()*float64(len(ready))), len(ready)-1)
		w := ready[i]
		ready = slices.Delete(ready, i, i+1)
		d, err := run.Decide(r, run.MachineClaimed{Attempt: r.Attempt.Number, Warm: w, Recycle: recycle}, s.now())
		if err != nil || !d.Changed {
			return r, false, err
		}
		err = s.claim(ctx, d, w.ClaimedBy(r.ID, r.Attempt.Number))
		if err == nil {
			d.Run.Version++
			return d.Run, false, nil
		}
		if !errors.Is(err, port.ErrConflict) {
			return r, false, fmt.Errorf("cannot claim a warm machine: %w", err)
		}
		if after, err := s.store.Load(ctx, r.Ref()); err != nil || after.Version != r.Version {
			return after, err == nil && sameClaim(r, after), err
		}
	}
	return r, true, nil
}

// sameClaim reports whether a changed run can still claim a machine in this call, because only
// its execution has changed. Otherwise another call acts for the run.
func sameClaim(r, after run.Run) bool {
	return after.MayClaim() && after.Attempt.Number == r.Attempt.Number && after.Attempt.CreateBy.Equal(r.Attempt.CreateBy)
}

// claim commits the claim of an attempt together with the claimed machine.
func (s *Launches) claim(ctx context.Context, d run.Decision, w platform.WarmMachine) error {
	is := port.WriteOf(d)
	is.Warm = &w
	if err := s.store.Commit(ctx, is); err != nil {
		return err
	}
	s.committed(ctx, &d)
	return nil
}

// startWarm starts the claimed machine of the attempt and commits it. An unanswered call is
// repeated for the same machine. After a refusal the machine is given up.
func (s *Launches) startWarm(ctx context.Context, r run.Run) (run.Run, error) {
	claim := r.Attempt.Warm
	warm, ok := s.runner.(port.WarmMachines)
	if !ok || claim.GivenUp || !s.now().Before(claim.StartBy) {
		return s.giveUp(ctx, r, fault.New(fault.StartTimeout, "the machine did not start in time"))
	}
	if kept := r.WarmForReuse(); kept.ID != "" && r.Attempt.MaybeCreated {
		w, found, err := s.warmRecord(ctx, kept)
		if err != nil {
			return r, err
		}
		if !found || w.Phase == platform.WarmEnding {
			return s.giveUp(ctx, r, fault.New(fault.Capacity, "an earlier call has given the machine up"))
		}
	}
	spec, err := s.spec(ctx, r)
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.SecretMissing {
		return s.refused(ctx, r, f)
	}
	if err != nil {
		return r, err
	}
	spec.Reuse = r.WarmForReuse()
	ctx, cancel := outlive(ctx, launchGrace)
	defer cancel()
	machine, err := warm.StartWarm(ctx, claim.Machine, spec)
	if err == nil {
		return s.created(ctx, r, machine)
	}
	f := port.StartFault(err)
	if f.Code != fault.Unavailable && f.Code != fault.Throttled {
		return s.giveUp(ctx, r, f)
	}
	s.warn(ctx, r, "the warm machine was not started", err)
	return s.refused(ctx, r, fault.Wrap(f, fault.Unavailable, "%s", f.Message))
}

// warmPause is the polling interval for a machine that is stopped and about to start.
const warmPause = 500 * time.Millisecond

// awaitWarm waits until the claimed machine of the attempt runs. After the start deadline it
// gives the machine up. The result then has no machine, and the attempt needs another one.
func (s *Launches) awaitWarm(ctx context.Context, r run.Run) (run.Run, error) {
	attempt := r.Attempt.Number
	for {
		left := r.Attempt.Warm.StartBy.Sub(s.now())
		machine, err := s.runner.Wait(ctx, r.Attempt.Machine, port.MachineRunning, max(left, time.Second))
		if err != nil {
			s.warn(ctx, r, "cannot see whether the warm machine has started", err)
			return r, nil
		}
		if machine.Phase == port.MachineGone && machine.Reuse.ID != "" && machine.Exit != nil {
			return s.apply(ctx, r.Ref(), s.factOf(ctx, attempt, machine)) // a short program
		}
		if machine.Phase == port.MachineGone {
			return s.giveUp(ctx, r, fault.New(fault.StartTimeout, "the machine is gone"))
		}
		waits := machine.Phase == port.MachineCreating && machine.StartFault == nil
		if shown := s.factOf(ctx, attempt, machine); shown != nil && !waits {
			return s.apply(ctx, r.Ref(), shown)
		}
		if machine.Exit != nil {
			return r, nil // the program has run; the sweep sees its machine gone
		}
		if left = r.Attempt.Warm.StartBy.Sub(s.now()); left <= 0 {
			return s.giveUp(ctx, r, fault.New(fault.StartTimeout, "the machine is %s", machine.Phase))
		}
		again, stop := s.clock.NewTimer(min(left, warmPause))
		select {
		case <-again:
		case <-ctx.Done():
			stop()
			return r, ctx.Err()
		}
		stop()
	}
}

// mayGiveUp commits, before the call, that the launch destroys the claimed machine of the
// attempt. ok is false if the worker has called or the attempt is over: then the launch must
// not destroy it.
func (s *Launches) mayGiveUp(ctx context.Context, r run.Run) (after run.Run, ok bool, err error) {
	if r.Attempt.Warm.GivenUp {
		return r, true, nil
	}
	of := run.GiveUpBegun{Attempt: r.Attempt.Number, ID: r.Attempt.Warm.ID}
	after, err = s.apply(ctx, r.Ref(), constantFact(of))
	return after, err == nil && after.IsCurrent(of.Attempt) && after.Attempt.Warm != nil && after.Attempt.Warm.GivenUp, err
}

// giveUp destroys the claimed machine of the attempt. The attempt uses another machine only if
// this one was seen gone and has run no program; otherwise the attempt ends.
func (s *Launches) giveUp(ctx context.Context, r run.Run, why *fault.Fault) (run.Run, error) {
	r, ok, err := s.mayGiveUp(ctx, r)
	if err != nil || !ok {
		return r, err
	}
	claim, attempt := r.Attempt.Warm, r.Attempt.Number
	s.warn(ctx, r, "a warm machine did not start and is destroyed", why)
	ours, err := s.endReusable(ctx, r.WarmForReuse(), ownerOf(r))
	if err == nil && !ours {
		return s.store.Load(ctx, r.Ref()) // the attempt is over
	}
	if err == nil {
		err = s.runner.Destroy(ctx, claim.Machine)
	}
	called := r.Attempt.Machine.Known() || r.Attempt.MaybeCreated // a call may have started the program
	var last port.MachineStatus
	var gone bool
	if err == nil {
		if _, gone, err = s.goneWithin(ctx, claim.Machine, s.config.DestroyWait, time.Time{}); gone {
			last, err = s.runner.Inspect(ctx, claim.Machine)
		}
	}
	if !gone && err == nil {
		err = errors.New("it still exists")
	}
	switch {
	case !gone && r.Attempt.Machine.Known():
		s.warn(ctx, r, "the warm machine was not seen gone", err)
		return r, nil // the start limit ends the attempt
	case !gone:
		return s.refused(ctx, r, fault.New(fault.Unavailable, "the warm machine %s was not seen gone", claim.Machine.ID))
	case called && (err != nil || last.Started || last.Exit != nil):
		started := claim.Machine
		if err == nil {
			started = last.Machine
		}
		if _, err := s.apply(ctx, r.Ref(), constantFact(run.MachineCreated{Attempt: attempt, Machine: started})); err != nil {
			return r, err
		}
		return s.apply(ctx, r.Ref(), constantFact(run.MachineGone{Attempt: attempt, Exit: last.Exit, GivenUp: true}))
	}
	return s.apply(ctx, r.Ref(), constantFact(run.MachineGivenUp{Attempt: attempt, ID: claim.ID}))
}

// endOutdated marks as ending the warm machines of the run's pool that have an older image. The
// tag now refers to the image of the new machine. A sweep destroys them. It is best effort: the
// age limit of warm machines also ends them.
func (s *Launches) endOutdated(ctx context.Context, r run.Run, image string, made port.MachineStatus) {
	if made.Digest == "" {
		return
	}
	p, err := s.pools.ForRun(ctx, r.Tenant, r.Slot.Pool)
	if err != nil || p.Warm == nil {
		return
	}
	created := made.CreatedAt
	if created.IsZero() {
		created = s.now()
	}
	have, err := s.store.WarmMachines(ctx, p.Ref())
	for _, w := range have {
		if (w.Phase == platform.WarmReady || w.Phase == platform.WarmCreating) && w.Outdated(image, made.Digest, created) {
			w.Phase = platform.WarmEnding
			if lost := s.store.SaveWarm(ctx, w); lost != nil && !errors.Is(lost, port.ErrConflict) {
				err = errors.Join(err, lost)
			}
		}
	}
	if err != nil {
		s.warn(ctx, r, "cannot end the warm machines of an earlier image", err)
	}
}
