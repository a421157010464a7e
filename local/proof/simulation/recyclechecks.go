package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// CheckRecycle implements checks. It checks the conditions of a recycling. The machine was created for this record.
// Its attempt is over, and its program exited with code 0. The record said so before the call.
func (w *world) CheckRecycle(m *machine, spec port.WarmSpec) {
	if m.warm.spec.Warm != spec.Warm || m.warm.spec.WarmKey != spec.WarmKey || spec.Warm.Tenant != m.spec.Owner.Tenant {
		w.Fail("warm machine %s of %+v is recycled for %+v", m.id, m.warm.spec, spec)
	}
	if m.exit == nil || m.exit.Code != 0 || m.exit.Requested || m.exit.OOM {
		w.Fail("warm machine %s is recycled after exit %+v", m.id, m.exit)
	}
	if r, ok := w.StoredRun(m.spec.Owner); ok && !r.State.Terminal() && r.Attempt.Number == m.spec.Owner.Attempt {
		w.Fail("warm machine %s is recycled while attempt %d of %s is %s", m.id, r.Attempt.Number, r.ID, r.State)
	}
	if record, ok := w.storedWarm(spec.Warm); !ok || record.Phase != platform.WarmRecycling {
		w.Fail("warm machine %s is recycled while its record is %q", m.id, record.Phase)
	}
}

// CheckReuse implements checks. It checks that a recycled machine is started for the same tenant, and that its
// earlier attempts are over.
func (w *world) CheckReuse(m *machine, spec port.LaunchSpec) {
	if len(m.warm.earlier) > 0 {
		w.warm.reused++
	}
	for _, earlier := range m.warm.earlier {
		of := earlier.spec.Owner
		if of.Tenant != spec.Owner.Tenant || of == spec.Owner {
			w.Fail("machine %s of %+v is started for %+v", m.id, of, spec.Owner)
		}
		if r, ok := w.StoredRun(of); earlier.alive() || ok && r.IsCurrent(of.Attempt) {
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

// CheckEndsRecord implements checks. It checks that the record of a kept machine ends before the machine does.
func (w *world) CheckEndsRecord(m *machine) {
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
	switch r, ok := w.StoredRun(m.spec.Owner); {
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
