package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// warmFacts are the facts about a machine that was created stopped.
type warmFacts struct {
	// spec is the spec of the record for which the machine was created.
	spec port.WarmSpec
	// createdAt is the time of its creation.
	createdAt time.Time
	// owned means that a start has made it the machine of an attempt.
	owned bool
	// version counts the changes of its configuration. earlier has the machine objects of
	// earlier attempts.
	version int
	earlier []*machine
	// refused means that its host has permanently refused a start.
	refused bool
	// strayAt is the time since which it has no record; zero while it has one.
	strayAt time.Time
}

// idle reports whether no attempt was started on the machine.
func (m *machine) idle() bool { return m.warm != nil && !m.warm.owned }

// flyMachines is a platform that can create stopped machines.
type flyMachines struct{ *provider }

// Launch implements port.Runner.
func (f flyMachines) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	f.checks.CheckCold(spec)
	return f.provider.Launch(ctx, spec)
}

// Prepare implements port.WarmMachines.
func (f flyMachines) Prepare(ctx context.Context, spec port.WarmSpec) (port.MachineStatus, error) {
	w := f.machines
	if err := f.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	if w.Chance(w.warmWays.slow) {
		w.Time.Sleep(w.UpTo(harness.Slowest))
	}
	m := f.named(spec.Name)
	switch {
	case m != nil && (m.warm == nil || m.warm.owned || m.warm.spec.Warm != spec.Warm):
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the name belongs to another machine")
	case m != nil:
	case w.Down(harness.Throttling), w.Chance(w.Plan.Throttles):
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many machines created at once")
	case w.Chance(w.Plan.NoCapacity):
		return port.MachineStatus{}, fault.New(fault.Capacity, "no capacity")
	default:
		m = f.prepare(spec)
	}
	return f.warmAnswer(m)
}

// prepare creates a stopped machine.
func (f flyMachines) prepare(spec port.WarmSpec) *machine {
	w := f.machines
	f.created++
	m := &machine{id: fmt.Sprintf("m%d", f.created), on: f.provider, phase: port.MachineCreating, visibleAt: w.Time.Now}
	m.spec = port.LaunchSpec{Placement: spec.Placement, Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB}
	m.warm = &warmFacts{spec: spec, createdAt: w.Time.Now}
	if w.Chance(w.Plan.Invisible) {
		m.visibleAt = m.visibleAt.Add(w.UpTo(20 * time.Second))
	}
	if w.Chance(w.Plan.Stuck) {
		m.stuckUntil = w.Time.Now.Add(w.UpTo(3 * time.Minute))
	}
	f.byID[m.id] = m
	f.live = append(f.live, m)
	w.Note("%s is prepared for pool %s as %s", m.id, spec.Warm.Pool, spec.Warm.ID)
	if w.Chance(w.Plan.Strangers) {
		w.Time.Push(w.UpTo(w.Longest), true, func() {
			if m.isKept() {
				f.drop(m)
			}
			if m.alive() {
				w.Note("a stranger destroys %s", m.id)
				w.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt).strangers++
				m.removed = true
				f.end(m, port.Exit{Code: 137, Signal: 9, Requested: true})
			}
		})
	}
	if !w.Chance(w.warmWays.stuckCreated) {
		w.soon(w.UpTo(5*time.Second), func() {
			if m.phase == port.MachineCreating && m.idle() && !m.destroyed {
				m.enter(port.MachineEnding)
			}
		})
	}
	return m
}

// StartWarm implements port.WarmMachines.
func (f flyMachines) StartWarm(ctx context.Context, of port.Machine, spec port.LaunchSpec) (port.MachineStatus, error) {
	w := f.machines
	w.Watch.DuringCall(spec.Env["TASK_ID"])
	if err := f.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	if w.Chance(w.warmWays.slow) {
		w.Time.Sleep(w.UpTo(harness.Slowest))
	}
	m := f.own(of)
	switch {
	case m == nil, !m.alive(), m.destroyed:
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "no such machine")
	case m.warm == nil:
		w.Fail("%s is started for attempt %d of %s and was not created stopped", m.id, spec.Owner.Attempt, spec.Owner.RunID)
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine runs")
	case m.warm.owned && m.spec.Owner == spec.Owner:
		return f.warmAnswer(m)
	case spec.Reuse.ID != "" && of.Version != m.warm.versionName():
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine has another version")
	}
	w.checks.CheckStartWarm(m, spec)
	switch {
	case m.warm.owned || m.phase != port.MachineEnding:
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine is %s", m.phase)
	case w.Chance(w.Plan.Throttles * 0.2):
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many calls for the machine")
	case w.Chance(w.warmWays.noRoom):
		m.warm.refused = true
		return port.MachineStatus{}, fault.New(fault.Capacity, "the host has no room")
	}
	m.warm.owned = true
	m.warm.version++
	w.checks.CheckReuse(m, spec)
	spec.Name, m.spec = m.spec.Name, spec
	m.enter(port.MachineCreating)
	w.checks.CheckSecrets(spec)
	w.checks.CheckLaunch(m)
	w.Note("%s is started for attempt %d of %s", m.id, spec.Owner.Attempt, spec.Owner.RunID)
	f.startLater(m)
	return f.warmAnswer(m)
}

// startLater draws whether and when a warm machine starts.
func (f flyMachines) startLater(m *machine) {
	w := f.machines
	if w.Chance(w.Plan.NeverStart) {
		return
	}
	w.addWorkers(m)
	begin := w.UpTo(2 * time.Second)
	switch {
	case w.Chance(w.warmWays.late):
		begin = 8*time.Second + w.UpTo(20*time.Second)
	case w.Chance(w.Plan.Immediate):
		begin = 0
	}
	w.soon(begin, m.start)
}

// warmAnswer is like answer for a warm machine.
func (f flyMachines) warmAnswer(m *machine) (port.MachineStatus, error) {
	if !f.Chance(f.Plan.LostCalls) {
		return m.view(), nil
	}
	f.Note("response about %s is lost", m.id)
	if m.warm.owned {
		f.unknownMachines++
	}
	return port.MachineStatus{}, fault.New(fault.Unavailable, "response lost")
}

// warmWays has the probabilities of faults of warm machines.
type warmWays struct {
	// stuckCreated machines are never ready. noRoom is a host's refusal to start a machine.
	// late machines start after the start deadline. slow calls arrive late.
	stuckCreated, noRoom, late, slow float64
}
