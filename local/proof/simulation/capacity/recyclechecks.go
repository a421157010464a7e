package capacity

import (
	"context"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/machines"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// CheckRecycle implements machines.Checks. It checks the conditions of a recycling. The machine was created for this record.
// Its attempt is over, and its program exited with code 0. The record said so before the call.
func (w *Capacity) CheckRecycle(m *machines.Machine, spec port.WarmSpec) {
	if m.Warm.Spec.Warm != spec.Warm || m.Warm.Spec.WarmKey != spec.WarmKey || spec.Warm.Tenant != m.Spec.Owner.Tenant {
		w.Fail("warm machine %s of %+v is recycled for %+v", m.ID, m.Warm.Spec, spec)
	}
	if m.Exit == nil || m.Exit.Code != 0 || m.Exit.Requested || m.Exit.OOM {
		w.Fail("warm machine %s is recycled after exit %+v", m.ID, m.Exit)
	}
	if r, ok := w.StoredRun(m.Spec.Owner); ok && !r.State.Terminal() && r.Attempt.Number == m.Spec.Owner.Attempt {
		w.Fail("warm machine %s is recycled while attempt %d of %s is %s", m.ID, r.Attempt.Number, r.ID, r.State)
	}
	if record, ok := w.storedWarm(spec.Warm); !ok || record.Phase != platform.WarmRecycling {
		w.Fail("warm machine %s is recycled while its record is %q", m.ID, record.Phase)
	}
}

// CheckReuse implements machines.Checks. It checks that a recycled machine is started for the same tenant, and that its
// earlier attempts are over.
func (w *Capacity) CheckReuse(m *machines.Machine, spec port.LaunchSpec) {
	if len(m.Warm.Earlier) > 0 {
		w.Warm.Reused++
	}
	for _, earlier := range m.Warm.Earlier {
		of := earlier.Spec.Owner
		if of.Tenant != spec.Owner.Tenant || of == spec.Owner {
			w.Fail("machine %s of %+v is started for %+v", m.ID, of, spec.Owner)
		}
		if r, ok := w.StoredRun(of); earlier.Alive() || ok && r.IsCurrent(of.Attempt) {
			w.Fail("machine %s is started for %+v while it has %+v", m.ID, spec.Owner, of)
		}
	}
}

// storedWarm reads the stored record of a warm machine.
func (w *Capacity) storedWarm(of platform.WarmRef) (found platform.WarmMachine, ok bool) {
	w.Observe(func() {
		have, err := w.Process.Store.WarmMachines(context.Background(), platform.PoolRef{Tenant: of.Tenant, ID: of.Pool})
		i := slices.IndexFunc(have, func(one platform.WarmMachine) bool { return one.ID == of.ID })
		if err == nil && i >= 0 {
			found, ok = have[i], true
		}
	})
	return found, ok
}

// CheckEndsRecord implements machines.Checks. It checks that the record of a kept machine ends before the machine does.
func (w *Capacity) CheckEndsRecord(m *machines.Machine) {
	if m.Spec.Reuse.ID == "" {
		return
	}
	if record, ok := w.storedWarm(m.Spec.Reuse); ok && record.Phase != platform.WarmEnding {
		w.Fail("kept machine %s of %+v is destroyed while its record is %s by attempt %d of %s", m.ID, m.Spec.Owner, record.Phase, record.Attempt, record.Run)
	}
}

// checkKeptMachine checks that a machine that is stopped after its attempt is recycled or
// destroyed in time.
func (w *Capacity) checkKeptMachine(m *machines.Machine) {
	since := m.EndedAt
	switch r, ok := w.StoredRun(m.Spec.Owner); {
	case ok && r.Attempt.Number == m.Spec.Owner.Attempt && !r.State.Terminal():
		m.NeededAt = w.Time.Now
		return
	case ok && r.Attempt.Number == m.Spec.Owner.Attempt:
		since = w.FactsOf(&r).EndedAt
	case m.NeededAt.After(since): // count from the retry
		since = m.NeededAt
	}
	bound := w.sweepBound() + time.Minute
	if late := w.Overdue(since, bound, bound+w.Patience()); late > 0 {
		w.Fail("machine %s is kept %s too long after attempt %d of %s", m.ID, late, m.Spec.Owner.Attempt, m.Spec.Owner.RunID)
	}
}
