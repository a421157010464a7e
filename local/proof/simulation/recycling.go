package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
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
	r.w.Note("%s, which was kept, is destroyed", m.id)
	r.kept = slices.DeleteFunc(slices.Clone(r.kept), func(one *machine) bool { return one == m })
	m.change()
}

// Recycle implements port.WarmMachines. The recycled machine is a new object with the same id;
// the earlier object stays the machine of its attempt.
func (f flyMachines) Recycle(ctx context.Context, of port.Machine, spec port.WarmSpec) (port.MachineStatus, error) {
	w := f.w
	if err := f.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	if w.Chance(w.warm.ways.slow) {
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
	w.checkRecycle(m, spec)
	f.kept = slices.DeleteFunc(slices.Clone(f.kept), func(one *machine) bool { return one == m })
	next := &machine{id: m.id, on: m.on, phase: port.MachineEnding, visibleAt: m.visibleAt}
	next.spec = port.LaunchSpec{Placement: spec.Placement, Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB}
	next.warm = &warmFacts{spec: spec, createdAt: m.warm.createdAt, version: m.warm.version + 1, earlier: append(slices.Clone(m.warm.earlier), m)}
	f.byID[fmt.Sprintf("%s in %s", m.id, m.warm.versionName())] = m
	f.byID[m.id] = next
	f.live = append(f.live, next)
	w.warm.recycled++
	w.Note("%s is recycled for pool %s as %s", m.id, spec.Warm.Pool, spec.Warm.ID)
	return f.warmAnswer(next)
}

// checkRecycle checks the conditions of a recycling. The machine was created for this record.
// Its attempt is over, and its program exited with code 0. The record said so before the call.
func (w *world) checkRecycle(m *machine, spec port.WarmSpec) {
	if m.warm.spec.Warm != spec.Warm || m.warm.spec.WarmKey != spec.WarmKey || spec.Warm.Tenant != m.spec.Owner.Tenant {
		w.Fail("warm machine %s of %+v is recycled for %+v", m.id, m.warm.spec, spec)
	}
	if m.exit == nil || m.exit.Code != 0 || m.exit.Requested || m.exit.OOM {
		w.Fail("warm machine %s is recycled after exit %+v", m.id, m.exit)
	}
	if r, ok := w.storedRun(m.spec.Owner); ok && !r.State.Terminal() && r.Attempt.Number == m.spec.Owner.Attempt {
		w.Fail("warm machine %s is recycled while attempt %d of %s is %s", m.id, r.Attempt.Number, r.ID, r.State)
	}
	if record, ok := w.storedWarm(spec.Warm); !ok || record.Phase != platform.WarmRecycling {
		w.Fail("warm machine %s is recycled while its record is %q", m.id, record.Phase)
	}
}

// checkReuse checks that a recycled machine is started for the same tenant, and that its
// earlier attempts are over.
func (w *world) checkReuse(m *machine, spec port.LaunchSpec) {
	if len(m.warm.earlier) > 0 {
		w.warm.reused++
	}
	for _, earlier := range m.warm.earlier {
		of := earlier.spec.Owner
		if of.Tenant != spec.Owner.Tenant || of == spec.Owner {
			w.Fail("machine %s of %+v is started for %+v", m.id, of, spec.Owner)
		}
		if r, ok := w.storedRun(of); earlier.alive() || ok && r.IsCurrent(of.Attempt) {
			w.Fail("machine %s is started for %+v while it has %+v", m.id, spec.Owner, of)
		}
	}
}

// storedWarm reads the stored record of a warm machine.
func (w *world) storedWarm(of platform.WarmRef) (found platform.WarmMachine, ok bool) {
	w.Observe(func() {
		have, err := w.Process.Store.WarmMachines(context.Background(), platform.PoolRef{Tenant: of.Tenant, ID: of.Pool})
		i := slices.IndexFunc(have, func(one platform.WarmMachine) bool { return one.ID == of.ID })
		if err == nil && i >= 0 {
			found, ok = have[i], true
		}
	})
	return found, ok
}

// checkEndsRecord checks that the record of a kept machine ends before the machine does.
func (w *world) checkEndsRecord(m *machine) {
	if m.spec.Reuse.ID == "" {
		return
	}
	if record, ok := w.storedWarm(m.spec.Reuse); ok && record.Phase != platform.WarmEnding {
		w.Fail("kept machine %s of %+v is destroyed while its record is %s by attempt %d of %s", m.id, m.spec.Owner, record.Phase, record.Attempt, record.Run)
	}
}

// checkKeptMachine checks that a machine that is stopped after its attempt is recycled or
// destroyed in time.
func (w *world) checkKeptMachine(m *machine) {
	since := m.endedAt
	switch r, ok := w.storedRun(m.spec.Owner); {
	case ok && r.Attempt.Number == m.spec.Owner.Attempt && !r.State.Terminal():
		m.neededAt = w.Time.Now
		return
	case ok && r.Attempt.Number == m.spec.Owner.Attempt:
		since = w.factsOf(&r).endedAt
	case m.neededAt.After(since): // count from the retry
		since = m.neededAt
	}
	bound := w.sweepBound() + time.Minute
	if late := w.overdue(since, bound, bound+w.patience()); late > 0 {
		w.Fail("machine %s is kept %s too long after attempt %d of %s", m.id, late, m.spec.Owner.Attempt, m.spec.Owner.RunID)
	}
}
