package runs

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strconv"
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
func (s *Sweeper) sweepMachines(ctx context.Context, warm *warmList) error {
	var failed crew.Failures
	known, err := s.placements(ctx)
	if err == nil {
		err = s.reception.count(ctx, len(known.machines), s.forwardLimit)
	}
	failed.Add(err)
	listed := s.parts.Crew(&failed)
	failed.Add(s.parts.InShare(ctx, 2, func(half context.Context) error {
		if err := s.runner.List(half, func(m port.MachineStatus) bool {
			if !known.markListed(m) && !warm.addWarm(m) {
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

func (s *Sweeper) sweepMachine(ctx context.Context, m port.MachineStatus, warm *warmList) error {
	ref := run.Ref{Tenant: m.Owner.Tenant, ID: m.Owner.RunID}
	r, err := s.store.Load(ctx, ref)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return err
	}
	needed := err == nil && r.State.HasMachine() && !r.Queued() && r.Attempt.Number == m.Owner.Attempt &&
		(r.Attempt.Machine.Key() == m.Key() || !r.Attempt.Machine.Known() && (r.Attempt.MachineName == m.Name || r.HasClaimed(m.Machine)))
	if !needed {
		if m.Phase == port.MachineGone {
			warm.add(m, m.Reuse) // its record decides
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

// placements are the machines of runs, with a few bytes for each.
type placements struct {
	seed maphash.Seed
	// machines has the runs by the hash of the machine's key.
	machines map[uint64]placed
	pages    []page
}

// placed is the state of a machine in the record of its run.
type placed struct {
	owner   uint64 // hash of the machine's owner
	page    int32
	running bool // the run is Running
	listed  bool // the runner has listed the machine
}

// page is a page of the store's runs with a machine.
type page struct {
	after run.Ref
	// unlisted counts the machines of the page that were not listed.
	unlisted int
}

func (p *placements) key(m port.Machine) uint64 {
	k := m.Key()
	return crew.HashOf(p.seed, k.Runner, k.App, k.Cluster, k.ID)
}

func (p *placements) ownerOf(o port.MachineOwner) uint64 {
	return crew.HashOf(p.seed, o.Tenant, o.RunID, strconv.Itoa(o.Attempt))
}

// markListed marks a machine as listed. It reports whether the machine runs and belongs to a
// Running run.
func (p *placements) markListed(m port.MachineStatus) bool {
	known, ok := p.machines[p.key(m.Machine)]
	if !ok {
		return false
	}
	if !known.listed {
		known.listed = true
		p.machines[p.key(m.Machine)] = known
		p.pages[known.page].unlisted--
	}
	return known.running && m.Phase == port.MachineRunning && known.owner == p.ownerOf(m.Owner)
}

// placements reads the runs with a machine. After an error it returns the runs that it has
// read.
func (s *Sweeper) placements(ctx context.Context) (*placements, error) {
	p := &placements{seed: maphash.MakeSeed(), machines: map[uint64]placed{}}
	var after run.Ref
	for {
		found, err := s.store.WithMachine(ctx, after, placementPage)
		if err != nil {
			return p, fmt.Errorf("cannot read the runs with a machine: %w", err)
		}
		p.pages = append(p.pages, page{after: after, unlisted: len(found)})
		for _, each := range found {
			owner := port.MachineOwner{Tenant: each.Run.Tenant, RunID: each.Run.ID, Attempt: each.Attempt}
			p.machines[p.key(each.Machine)] = placed{
				owner: p.ownerOf(owner), page: int32(len(p.pages) - 1), running: each.State == run.Running, //nolint:gosec // G115: fewer pages
			}
			after = each.Run
		}
		if len(found) < placementPage {
			return p, nil
		}
	}
}

// sweepUnlisted inspects the machines of runs that the runner has not listed.
func (s *Sweeper) sweepUnlisted(ctx context.Context, known *placements, failed *crew.Failures) {
	at := s.parts.StartOf("unlisted")
	unlisted := s.parts.Crew(failed)
	defer unlisted.Wait()
	for i := range known.pages {
		n := (i + at.Turn) % len(known.pages)
		if known.pages[n].unlisted <= 0 {
			continue
		}
		found, err := s.store.WithMachine(ctx, known.pages[n].after, placementPage)
		if err != nil {
			failed.Add(fmt.Errorf("cannot read the runs with a machine: %w", err))
		}
		for _, each := range found {
			if p, ok := known.machines[known.key(each.Machine)]; ok && !p.listed {
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
