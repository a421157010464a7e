package machines

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

// IsKept reports whether the machine still exists, stopped after an attempt.
func (m *Machine) IsKept() bool { return slices.Contains(m.On.Kept, m) }

// Served reports whether the machine is the machine of the run's attempt, or was it before it
// was recycled.
func (m *Machine) Served(r *run.Run) bool {
	all := []*Machine{m}
	if m.Warm != nil {
		all = append(all, m.Warm.Earlier...)
	}
	return slices.ContainsFunc(all, func(one *Machine) bool {
		return one.Spec.Owner.RunID == r.ID && one.Spec.Owner.Attempt == r.Attempt.Number
	})
}

// GaveUp reports whether the run's attempt claimed the machine and the machine is gone. The
// attempt ends if it cannot know whether its program has started.
func (m *Machine) GaveUp(r *run.Run) bool {
	claim := r.Attempt.Warm
	return m.Warm != nil && m.Phase == port.MachineGone && claim != nil && claim.Machine.ID == m.ID
}

// drop removes a kept machine.
func (w *Machines) drop(m *Machine) {
	w.Note("%s, which was kept, is destroyed", m.ID)
	w.Kept = slices.DeleteFunc(slices.Clone(w.Kept), func(one *Machine) bool { return one == m })
	m.change()
}

// Recycle implements port.WarmMachines. The recycled machine is a new object with the same id;
// the earlier object stays the machine of its attempt.
func (f flyMachines) Recycle(ctx context.Context, of port.Machine, spec port.WarmSpec) (port.MachineStatus, error) {
	w := f.Machines
	if err := f.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	if w.Chance(w.WarmWays.Slow) {
		w.Time.Sleep(w.UpTo(harness.Slowest))
	}
	m := f.own(of)
	switch {
	case m == nil || m.Warm == nil:
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "no such machine")
	case m.Idle() && m.Alive() && !m.Destroyed && m.Warm.Spec.Warm == spec.Warm:
		return f.warmAnswer(m)
	case !m.IsKept() || of.Version != m.Warm.versionName():
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine is %s in version %s", m.Phase, m.Warm.versionName())
	case w.Injects("throttled call of the platform", w.Plan.Throttles*0.2):
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many calls for the machine")
	}
	w.checks.CheckRecycle(m, spec)
	f.Kept = slices.DeleteFunc(slices.Clone(f.Kept), func(one *Machine) bool { return one == m })
	next := &Machine{ID: m.ID, On: m.On, Phase: port.MachineEnding, VisibleAt: m.VisibleAt}
	next.Spec = port.LaunchSpec{Placement: spec.Placement, Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB}
	next.Warm = &warmFacts{Spec: spec, CreatedAt: m.Warm.CreatedAt, version: m.Warm.version + 1, Earlier: append(slices.Clone(m.Warm.Earlier), m)}
	f.ByID[fmt.Sprintf("%s in %s", m.ID, m.Warm.versionName())] = m
	f.ByID[m.ID] = next
	f.Live = append(f.Live, next)
	w.Recycled++
	w.Note("%s is recycled for pool %s as %s", m.ID, spec.Warm.Pool, spec.Warm.ID)
	return f.warmAnswer(next)
}
