package simulation

import (
	"context"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// versionName returns the version of a machine as its platform reports it.
func (f *warmFacts) versionName() string { return fmt.Sprint("v", f.version) }

// isKept reports whether the machine still exists, stopped after an attempt.
func (m *machine) isKept() bool { return slices.Contains(m.on.kept, m) }

// served reports whether the machine is the machine of the run's attempt, or was it before it
// was recycled.
func (m *machine) served(r *run.Run) bool {
	all := []*machine{m}
	if m.warm != nil {
		all = append(all, m.warm.earlier...)
	}
	return slices.ContainsFunc(all, func(one *machine) bool {
		return one.spec.Owner.RunID == r.ID && one.spec.Owner.Attempt == r.Attempt.Number
	})
}

// gaveUp reports whether the run's attempt claimed the machine and the machine is gone. The
// attempt ends if it cannot know whether its program has started.
func (m *machine) gaveUp(r *run.Run) bool {
	claim := r.Attempt.Warm
	return m.warm != nil && m.phase == port.MachineGone && claim != nil && claim.Machine.ID == m.id
}

// drop removes a kept machine.
func (r *machines) drop(m *machine) {
	r.Note("%s, which was kept, is destroyed", m.id)
	r.kept = slices.DeleteFunc(slices.Clone(r.kept), func(one *machine) bool { return one == m })
	m.change()
}

// Recycle implements port.WarmMachines. The recycled machine is a new object with the same id;
// the earlier object stays the machine of its attempt.
func (f flyMachines) Recycle(ctx context.Context, of port.Machine, spec port.WarmSpec) (port.MachineStatus, error) {
	w := f.machines
	if err := f.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	if w.Chance(w.warmWays.slow) {
		w.Time.Sleep(w.UpTo(harness.Slowest))
	}
	m := f.own(of)
	switch {
	case m == nil || m.warm == nil:
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "no such machine")
	case m.idle() && m.alive() && !m.destroyed && m.warm.spec.Warm == spec.Warm:
		return f.warmAnswer(m)
	case !m.isKept() || of.Version != m.warm.versionName():
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine is %s in version %s", m.phase, m.warm.versionName())
	case w.Chance(w.Plan.Throttles * 0.2):
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many calls for the machine")
	}
	w.checks.CheckRecycle(m, spec)
	f.kept = slices.DeleteFunc(slices.Clone(f.kept), func(one *machine) bool { return one == m })
	next := &machine{id: m.id, on: m.on, phase: port.MachineEnding, visibleAt: m.visibleAt}
	next.spec = port.LaunchSpec{Placement: spec.Placement, Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB}
	next.warm = &warmFacts{spec: spec, createdAt: m.warm.createdAt, version: m.warm.version + 1, earlier: append(slices.Clone(m.warm.earlier), m)}
	f.byID[fmt.Sprintf("%s in %s", m.id, m.warm.versionName())] = m
	f.byID[m.id] = next
	f.live = append(f.live, next)
	w.recycled++
	w.Note("%s is recycled for pool %s as %s", m.id, spec.Warm.Pool, spec.Warm.ID)
	return f.warmAnswer(next)
}
