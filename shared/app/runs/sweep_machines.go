package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/crew"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// strayWait is how long a sweep waits until a machine that it destroyed is gone.
const strayWait = time.Second

// placementPage is how many runs with a machine a sweep reads at a time.
const placementPage = 500

// sweepMachines commits to each run what the runner shows about its machine, and destroys
// machines that no run needs. Most machines are running and belong to a Running run; those need
// no read of the record.
//
// A machine that is not in the list is inspected: absence from a list proves nothing, an
// inspection does.
//
// Warm machines without an attempt, and machines that are kept after one, are added to warm.
func (s *Sweeper) sweepMachines(ctx context.Context, warm *crew.WarmList) error {
	var failed crew.Failures
	known, err := s.placements(ctx)
	if err == nil {
		err = s.reception.Count(ctx, known.Len(), s.forwardLimit)
	}
	failed.Add(err)
	listed := s.parts.Crew(&failed)
	failed.Add(s.parts.InShare(ctx, 2, func(half context.Context) error {
		if err := s.runner.List(half, func(m port.MachineStatus) bool {
			if !known.MarkListed(m) && !warm.Add(m, m.Warm) {
				listed.Do(ctx, func(ctx context.Context) error { return s.sweepMachine(ctx, m, warm) })
			}
			return ctx.Err() == nil
		}); err != nil {
			return fmt.Errorf("cannot list all machines: %w", err)
		}
		return nil
	}))
	listed.Wait()
	s.sweepUnlisted(ctx, known, &failed)
	if err := failed.Join(ctx); err != nil {
		return err
	}
	return s.claim(ctx)
}

func (s *Sweeper) sweepMachine(ctx context.Context, m port.MachineStatus, warm *crew.WarmList) error {
	ref := run.Ref{Tenant: m.Owner.Tenant, ID: m.Owner.RunID}
	r, err := s.store.Load(ctx, ref)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return err
	}
	needed := err == nil && r.State.HasMachine() && !r.Queued() && r.Attempt.Number == m.Owner.Attempt &&
		(r.Attempt.Machine.Key() == m.Key() || !r.Attempt.Machine.Known() && (r.Attempt.MachineName == m.Name || r.HasClaimed(m.Machine)))
	if !needed {
		if m.Phase == port.MachineGone {
			warm.Add(m, m.Reuse) // its record decides
			return nil
		}
		if ours, err := s.endReusable(ctx, m.Reuse, m.Owner); err != nil || !ours {
			return err // the list lags, and another attempt has the machine
		}
		if err != nil {
			if err := s.mayDestroyUnknown(ctx, m); err != nil {
				return err
			}
		}
		s.log.LogAttrs(ctx, slog.LevelWarn, "a machine that no run needs is destroyed", about.Machine(m, r)...)
		if r.State.Terminal() {
			return s.discard(ctx, s.outputs, m, ref, strayWait)
		}
		return s.runner.Destroy(ctx, m.Machine)
	}
	if !r.Attempt.Machine.Known() {
		if _, err := s.applyTo(ctx, r, constantFact(run.Swept{Fact: run.MachineCreated{Attempt: m.Owner.Attempt, Machine: m.Machine}})); err != nil {
			return err
		}
	}
	if r.State == run.Running && m.Phase == port.MachineRunning || r.State == run.Terminating {
		return nil
	}
	return s.commitStatus(ctx, ref, m.Owner.Attempt, m)
}

// placements reads the runs with a machine. After an error it returns the runs that it has
// read.
func (s *Sweeper) placements(ctx context.Context) (*crew.Placements, error) {
	p := crew.NewPlacements()
	var after run.Ref
	for {
		found, err := s.store.WithMachine(ctx, after, placementPage)
		if err != nil {
			return p, fmt.Errorf("cannot read the runs with a machine: %w", err)
		}
		p.Add(after, found)
		if len(found) < placementPage {
			return p, nil
		}
		after = found[len(found)-1].Run
	}
}

// sweepUnlisted inspects the machines of runs that the runner has not listed.
func (s *Sweeper) sweepUnlisted(ctx context.Context, known *crew.Placements, failed *crew.Failures) {
	at := s.parts.StartOf("unlisted")
	unlisted := s.parts.Crew(failed)
	defer unlisted.Wait()
	for i := range known.Pages() {
		n := (i + at.Turn) % known.Pages()
		after, some := known.Unlisted(n)
		if !some {
			continue
		}
		found, err := s.store.WithMachine(ctx, after, placementPage)
		if err != nil {
			failed.Add(fmt.Errorf("cannot read the runs with a machine: %w", err))
		}
		for _, each := range found {
			if known.Absent(each.Machine) {
				unlisted.Do(ctx, func(ctx context.Context) error { return s.sweepAbsent(ctx, each) })
			}
		}
		if ctx.Err() != nil {
			s.parts.StartNext("unlisted", crew.Position{Turn: n + 1})
			return
		}
	}
}

func (s *Machines) sweepAbsent(ctx context.Context, p port.Placement) error {
	ctx = countCalls(ctx, p.Run)
	m, err := s.runner.Inspect(ctx, p.Machine)
	if errors.Is(err, port.ErrNotFound) {
		r, err := s.store.Load(ctx, p.Run)
		if errors.Is(err, port.ErrNotFound) || err == nil && (port.PlacementOf(r) != p || s.now().Before(r.Attempt.StartBy)) {
			return nil // the run has moved on, or the machine may not be visible yet
		}
		if err != nil {
			return fmt.Errorf("cannot load the run: %w", err)
		}
		m = port.MachineStatus{Machine: p.Machine, Phase: port.MachineGone}
	} else if err != nil {
		return fmt.Errorf("cannot inspect machine %s: %w", p.Machine.ID, err)
	}
	return s.commitStatus(ctx, p.Run, p.Attempt, m)
}

// commitStatus commits the fact that follows from the status of an attempt's machine.
func (s *Machines) commitStatus(ctx context.Context, ref run.Ref, attempt int, machine port.MachineStatus) error {
	shown := s.factOf(ctx, attempt, machine)
	if shown == nil {
		return nil
	}
	_, err := s.apply(ctx, ref, func(r run.Run) run.Fact { return run.Swept{Fact: shown(r)} })
	return err
}
