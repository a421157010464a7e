package capacity

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/machines"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// warmth is the observed state of the world's warm machines.
type warmth struct {
	// operated means that the operator makes no more changes. closing and closed mean that the
	// pools end and have ended their warm machines after the last run.
	operated, closing, closed bool
	// touched are the pools whose records may have changed.
	touched map[platform.PoolRef]bool
	records map[platform.WarmRef]warmRecord
	// claims maps the id and version of a machine to the attempt that claimed it.
	claims map[string]port.MachineOwner
	// Reused counts the starts of recycled machines.
	Reused int
	// Claimed counts the claims. stuck counts the claimed machines that were abandoned.
	Claimed, Stuck int
}

// warmRecord is a stored record, and the time since which it is in its state.
type warmRecord struct {
	platform.WarmMachine
	since time.Time
}

// TouchWarm implements harness.Watch. It records that a record may have changed.
func (w *Capacity) TouchWarm(m platform.WarmMachine) {
	if w.Warm != nil {
		if w.Warm.touched == nil {
			w.Warm.touched = map[platform.PoolRef]bool{}
		}
		w.Warm.touched[platform.PoolRef{Tenant: m.Tenant, ID: m.Pool}] = true
	}
}

// refreshWarm reads the records of touched pools and checks their changes.
func (w *Capacity) refreshWarm() {
	known := w.Warm
	for ref := range known.touched {
		have, err := w.Process.Store.WarmMachines(context.Background(), ref)
		if err != nil {
			w.Fail("cannot read the warm machines of %s: %v", ref.ID, err)
		}
		before := known.records
		known.records = map[platform.WarmRef]warmRecord{}
		for of, r := range before {
			if of.Tenant != ref.Tenant || of.Pool != ref.ID {
				known.records[of] = r
			}
		}
		for _, m := range have {
			r := warmRecord{m, w.Time.Now}
			if was, ok := before[m.Ref()]; ok {
				w.checkRecord(was.WarmMachine, m)
				if was.Phase == m.Phase {
					r.since = was.since
				}
			}
			known.records[m.Ref()] = r
		}
	}
	clear(known.touched)
}

// checkRecord checks a change of a record.
func (w *Capacity) checkRecord(was, is platform.WarmMachine) {
	if was.Phase == platform.WarmClaimed && is.Phase == platform.WarmClaimed && is.Recycled == was.Recycled && (was.Run != is.Run || was.Attempt != is.Attempt) {
		w.Fail("warm machine %s of attempt %d of %s is claimed by attempt %d of %s", is.ID, was.Attempt, was.Run, is.Attempt, is.Run)
	}
	if was.Phase == platform.WarmEnding && is.Phase != platform.WarmEnding || was.Machine.Known() && was.Machine.Key() != is.Machine.Key() {
		w.Fail("the record of warm machine %s went from %+v to %+v", is.ID, was, is)
	}
}

// CheckWarm checks the warm machines after an event.
func (w *Capacity) CheckWarm() {
	if w.Warm == nil {
		return
	}
	w.refreshWarm()
	for _, p := range w.Pools {
		w.checkWarmCount(p)
	}
	for _, m := range w.Machines.Live {
		if m.Idle() && !m.Destroyed && m.Phase != port.MachineUnknown {
			w.checkIdleMachine(m)
		}
	}
	for _, m := range w.Machines.Kept {
		w.checkKeptMachine(m)
	}
	for _, r := range w.Records.Ordered {
		w.checkClaimDeadline(r)
	}
}

// sweepBound limits the time of a repair by a sweep if nothing fails: two sweeps, each of which
// waits for permits and for ending machines.
func (w *Capacity) sweepBound() time.Duration {
	bound := 2*w.Config.SweepInterval + 2*time.Minute
	if w.Plan.Stuck+w.Plan.Invisible > 0 {
		bound += 3 * time.Minute
	}
	return bound
}

// settledSince returns the latest time of a pool change that sweeps must have applied by now.
// Later changes may not be applied yet.
func (w *Capacity) settledSince() time.Time {
	bound := w.sweepBound() + 2*w.Plan.Skew
	if !w.Calm() {
		bound += w.Patience()
	}
	return w.Time.Now.Add(-bound)
}

// checkWarmCount checks that a pool has at most its maximum of unclaimed warm machines.
func (w *Capacity) checkWarmCount(p *pool) {
	most, _ := p.warmLimits(w.settledSince())
	have := 0
	for of, r := range w.Warm.records {
		if of.Pool != p.Id || r.Phase != platform.WarmCreating && r.Phase != platform.WarmReady && r.Phase != platform.WarmRecycling {
			continue
		}
		if m := w.Machines.ByID[r.Machine.ID]; m == nil || (m.Alive() || m.IsKept()) && !m.Destroyed {
			have++
		}
	}
	if have > most && w.Calm() {
		w.Fail("pool %s has %d warm machines, want at most %d", p.Id, have, most)
	}
}

// checkIdleMachine checks that a machine without an attempt does not outlive its record, its
// pool or its maximum age.
func (w *Capacity) checkIdleMachine(m *machines.Machine) {
	of := m.Warm.Spec.Warm
	record, ok := w.Warm.records[of]
	switch {
	case ok:
		m.Warm.StrayAt = time.Time{}
	case m.Warm.StrayAt.IsZero():
		m.Warm.StrayAt = w.Time.Now
	}
	bound := w.sweepBound()
	late := func(since time.Time) time.Duration { return w.Overdue(since, bound, bound+w.Patience()) }
	if d := late(m.Warm.StrayAt); d > 0 {
		w.Fail("warm machine %s has no record and exists %s too long", m.ID, d)
	}
	if ok && record.Phase == platform.WarmClaimed { // its attempt starts or abandons it
		return
	}
	p := w.poolOf(of.Pool)
	if d := late(p.warmOff()); d > 0 {
		w.Fail("warm machine %s outlives those of pool %s by %s", m.ID, p.Id, d)
	}
	_, age := p.warmLimits(w.settledSince())
	if d := late(m.Warm.CreatedAt.Add(age)); d > 0 && age > 0 {
		w.Fail("warm machine %s is %s older than %s", m.ID, d, age)
	}
	if d := late(m.Warm.CreatedAt.Add(5 * time.Minute)); d > 0 && m.Phase == port.MachineCreating {
		w.Fail("warm machine %s is not ready and exists %s too long", m.ID, d)
	}
}

// CheckClaims checks the claim in a changed run.
func (w *Capacity) CheckClaims(before, r *run.Run) {
	if w.Warm == nil {
		return
	}
	if claim := r.Attempt.Warm; claim != nil {
		owner := port.MachineOwner{Tenant: r.Tenant, RunID: r.ID, Attempt: r.Attempt.Number}
		if w.Warm.claims == nil {
			w.Warm.claims = map[string]port.MachineOwner{}
		}
		id := claim.Machine.ID + " " + claim.Machine.Version
		switch by, ok := w.Warm.claims[id]; {
		case !ok:
			w.Warm.claims[id] = owner
			w.Warm.Claimed++
		case by != owner:
			w.Fail("warm machine %s is claimed by attempt %d of %s, and by attempt %d of %s", claim.Machine.ID, by.Attempt, by.RunID, r.Attempt.Number, r.ID)
		}
	}
	if before == nil || before.Attempt.Number != r.Attempt.Number {
		return
	}
	if given := r.Attempt.StuckWarm - before.Attempt.StuckWarm; given != 0 {
		w.Warm.Stuck += given
	}
	if given := before.Attempt.Warm; given != nil && (r.Attempt.Warm == nil || r.Attempt.Warm.ID != given.ID) {
		if m := w.Machines.ByID[given.Machine.ID]; m.Alive() || !m.RanAt.IsZero() {
			w.Fail("attempt %d of %s gives up warm machine %s, which is %s and ran at %s", r.Attempt.Number, r.ID, m.ID, m.Phase, m.RanAt)
		}
		if r.Attempt.StuckWarm <= before.Attempt.StuckWarm {
			w.Fail("attempt %d of %s has lost its claim on %s", r.Attempt.Number, r.ID, given.Machine.ID)
		}
	}
	if r.Attempt.StuckWarm > mostStuck {
		w.Fail("attempt %d of %s has given up %d warm machines, want at most %d", r.Attempt.Number, r.ID, r.Attempt.StuckWarm, mostStuck)
	}
}

// mostStuck limits the warm machines that an attempt abandons.
const mostStuck = 2

// GaveUp reports whether the attempt has abandoned its claimed machine since the previous
// version.
func GaveUp(before, r *run.Run) bool { return r.Attempt.StuckWarm > before.Attempt.StuckWarm }

// checkClaimDeadline checks that a claimed machine runs by its start deadline or is abandoned.
func (w *Capacity) checkClaimDeadline(r *run.Run) {
	claim := r.Attempt.Warm
	if r.State != run.ContainerCreating || claim == nil {
		return
	}
	by := claim.StartBy
	if r.Attempt.BackoffUntil.After(by) {
		by = r.Attempt.BackoffUntil
	}
	// Within a minute the launch decides how to continue; later a sweep does.
	bound := time.Minute + w.Config.DestroyWait + w.sweepBound()
	if w.Plan.Stuck+w.Plan.Invisible+w.WarmWays.Slow == 0 && w.Plan.Throttles == 0 {
		bound = w.Config.DestroyWait + 5*time.Second
	}
	if late := w.Overdue(by, bound, bound+w.Patience()); late > 0 {
		w.Fail("attempt %d of %s waits %s too long for warm machine %s", r.Attempt.Number, r.ID, late, claim.Machine.ID)
	}
}

// CheckStartWarm implements machines.Checks. It checks that a machine is started for the attempt that claimed it.
func (w *Capacity) CheckStartWarm(m *machines.Machine, spec port.LaunchSpec) {
	if m.Warm.Owned {
		w.Fail("warm machine %s of attempt %d of %s is started for attempt %d of %s", m.ID, m.Spec.Owner.Attempt, m.Spec.Owner.RunID, spec.Owner.Attempt, spec.Owner.RunID)
	}
	r, ok := w.StoredRun(spec.Owner)
	of := m.Warm.Spec.Warm
	if of.Tenant != spec.Owner.Tenant || ok && r.Attempt.Number == spec.Owner.Attempt && r.Slot.Pool != of.Pool && r.IsCurrent(spec.Owner.Attempt) {
		w.Fail("warm machine %s of pool %s of %s is started for %+v", m.ID, of.Pool, of.Tenant, spec.Owner)
	}
	if ok && r.IsCurrent(spec.Owner.Attempt) && !r.HasClaimed(port.Machine{Runner: m.On.Runner, ID: m.ID}) {
		w.Fail("warm machine %s is started for attempt %d of %s, which has not claimed it", m.ID, spec.Owner.Attempt, spec.Owner.RunID)
	}
	if spec.Image != m.Warm.Spec.Image || spec.CPUs != m.Warm.Spec.CPUs || spec.MemoryMB != m.Warm.Spec.MemoryMB {
		w.Fail("warm machine %s with %+v is started for %s with %d CPUs and %d MB", m.ID, m.Warm.Spec.WarmKey, spec.Image, spec.CPUs, spec.MemoryMB)
	}
}

// MayGiveUp reports whether an attempt may destroy the claimed machine that it needs: the host
// has refused the start, or the start deadline has passed. A program that starts after the
// deadline may be ended.
func (w *Capacity) MayGiveUp(r run.Run, m *machines.Machine) bool {
	claim := r.Attempt.Warm
	if m.Warm == nil || claim == nil || claim.Machine.ID != m.ID {
		return false
	}
	if r.State != run.ContainerCreating && r.Attempt.StartedAt.Add(2*w.Plan.Skew).Before(claim.StartBy) { // the clocks of two hosts
		return false
	}
	return m.Warm.Refused || !w.Time.Now.Add(2*w.Plan.Skew).Before(claim.StartBy)
}

// CheckDestroyIdle checks that no attempt needs a machine on which no attempt was started.
func (w *Capacity) CheckDestroyIdle(m *machines.Machine) {
	var stored []platform.WarmMachine
	of := m.Warm.Spec.Warm
	w.Observe(func() {
		stored, _ = w.Process.Store.WarmMachines(context.Background(), platform.PoolRef{Tenant: of.Tenant, ID: of.Pool})
	})
	for _, record := range stored {
		if record.ID != of.ID || record.Machine.ID != m.ID {
			continue
		}
		r, ok := w.StoredRun(port.MachineOwner{Tenant: of.Tenant, RunID: record.Run})
		if record.Phase == platform.WarmReady || ok && r.Claims(record) && r.IsCurrent(record.Attempt) && !w.MayGiveUp(r, m) {
			w.Fail("warm machine %s is destroyed while its record is %s by attempt %d of %s", m.ID, record.Phase, record.Attempt, record.Run)
		}
	}
}

// CheckCold implements machines.Checks. It checks that a machine is created for an attempt only if no warm machine is ready
// for it.
func (w *Capacity) CheckCold(spec port.LaunchSpec) {
	r, ok := w.StoredRun(spec.Owner)
	if !ok || !w.Calm() || !r.MayClaim() || r.Attempt.Number != spec.Owner.Attempt {
		return
	}
	key := platform.WarmKey{Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB, Region: spec.Region}
	for of, record := range w.Warm.records {
		m := w.Machines.ByID[record.Machine.ID]
		long := w.Time.Now.Sub(record.since) > 30*time.Second+2*w.Plan.Skew
		if of.Pool == r.Slot.Pool && record.Claimable(key, spec.Placement) && long && m.Alive() && w.poolOf(of.Pool).warmOff().IsZero() {
			w.Fail("attempt %d of %s gets a new machine while warm machine %s is ready", r.Attempt.Number, r.ID, m.ID)
		}
	}
}

// WarmLeft returns the id of a remaining record, or "". A deleted pool can leave the record of
// a creation that failed with its process.
func (w *Capacity) WarmLeft() string {
	for of := range w.Warm.records {
		if of.Pool != spare || w.Calm() {
			return of.ID
		}
	}
	return ""
}

// GivenUp returns the number of warm machines that the attempt has abandoned.
func (w *Capacity) GivenUp(of port.MachineOwner) int {
	if w.Warm == nil {
		return 0
	}
	r, ok := w.StoredRun(of)
	if !ok || r.Attempt.Number != of.Attempt {
		return 0
	}
	return r.Attempt.StuckWarm
}
