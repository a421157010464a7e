package machines

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
	// Spec is the spec of the record for which the machine was created.
	Spec port.WarmSpec
	// CreatedAt is the time of its creation.
	CreatedAt time.Time
	// Owned means that a start has made it the machine of an attempt.
	Owned bool
	// version counts the changes of its configuration. earlier has the machine objects of
	// earlier attempts.
	version int
	Earlier []*Machine
	// Refused means that its host has permanently refused a start.
	Refused bool
	// StrayAt is the time since which it has no record; zero while it has one.
	StrayAt time.Time
}

// Idle reports whether no attempt was started on the machine.
func (m *Machine) Idle() bool { return m.Warm != nil && !m.Warm.Owned }

// flyMachines is a platform that can create stopped machines.
type flyMachines struct{ *provider }

// Launch implements port.Runner.
func (f flyMachines) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	f.checks.CheckCold(spec)
	return f.provider.Launch(ctx, spec)
}

// Prepare implements port.WarmMachines.
func (f flyMachines) Prepare(ctx context.Context, spec port.WarmSpec) (port.MachineStatus, error) {
	w := f.Machines
	if err := f.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	if w.Chance(w.WarmWays.Slow) {
		w.Time.Sleep(w.UpTo(harness.Slowest))
	}
	m := f.named(spec.Name)
	switch {
	case m != nil && (m.Warm == nil || m.Warm.Owned || m.Warm.Spec.Warm != spec.Warm):
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the name belongs to another machine")
	case m != nil:
	case w.Down(harness.Throttling), w.Injects("throttled call of the platform", w.Plan.Throttles):
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many machines created at once")
	case w.Injects("no capacity", w.Plan.NoCapacity):
		return port.MachineStatus{}, fault.New(fault.Capacity, "no capacity")
	default:
		m = f.prepare(spec)
	}
	return f.warmAnswer(m)
}

// prepare creates a stopped machine.
func (f flyMachines) prepare(spec port.WarmSpec) *Machine {
	w := f.Machines
	f.Created++
	m := &Machine{ID: fmt.Sprintf("m%d", f.Created), On: f.provider, Phase: port.MachineCreating, VisibleAt: w.Time.Now}
	m.Spec = port.LaunchSpec{Placement: spec.Placement, Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB}
	m.Warm = &warmFacts{Spec: spec, CreatedAt: w.Time.Now}
	if w.Injects("machine that is not listed", w.Plan.Invisible) {
		m.VisibleAt = m.VisibleAt.Add(w.UpTo(20 * time.Second))
	}
	if w.Injects("stuck machine", w.Plan.Stuck) {
		m.stuckUntil = w.Time.Now.Add(w.UpTo(3 * time.Minute))
	}
	f.ByID[m.ID] = m
	f.Live = append(f.Live, m)
	w.Note("%s is prepared for pool %s as %s", m.ID, spec.Warm.Pool, spec.Warm.ID)
	if w.Injects("machine stopped from outside", w.Plan.Strangers) {
		w.Time.Push(w.UpTo(w.Longest), true, func() {
			if m.IsKept() {
				f.drop(m)
			}
			if m.Alive() {
				w.Note("a stranger destroys %s", m.ID)
				w.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt).Strangers++
				m.removed = true
				f.end(m, port.Exit{Code: 137, Signal: 9, Requested: true})
			}
		})
	}
	if !w.Chance(w.WarmWays.StuckCreated) {
		w.soon(w.UpTo(5*time.Second), func() {
			if m.Phase == port.MachineCreating && m.Idle() && !m.Destroyed {
				m.enter(port.MachineEnding)
			}
		})
	}
	return m
}

// StartWarm implements port.WarmMachines.
func (f flyMachines) StartWarm(ctx context.Context, of port.Machine, spec port.LaunchSpec) (port.MachineStatus, error) {
	w := f.Machines
	w.Watch.DuringCall(spec.Env["TASK_ID"])
	if err := f.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	if w.Chance(w.WarmWays.Slow) {
		w.Time.Sleep(w.UpTo(harness.Slowest))
	}
	m := f.own(of)
	switch {
	case m == nil, !m.Alive(), m.Destroyed:
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "no such machine")
	case m.Warm == nil:
		w.Fail("%s is started for attempt %d of %s and was not created stopped", m.ID, spec.Owner.Attempt, spec.Owner.RunID)
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine runs")
	case m.Warm.Owned && m.Spec.Owner == spec.Owner:
		return f.warmAnswer(m)
	case spec.Reuse.ID != "" && of.Version != m.Warm.versionName():
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine has another version")
	}
	w.checks.CheckStartWarm(m, spec)
	switch {
	case m.Warm.Owned || m.Phase != port.MachineEnding:
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine is %s", m.Phase)
	case w.Injects("throttled call of the platform", w.Plan.Throttles*0.2):
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many calls for the machine")
	case w.Chance(w.WarmWays.NoRoom):
		m.Warm.Refused = true
		return port.MachineStatus{}, fault.New(fault.Capacity, "the host has no room")
	}
	m.Warm.Owned = true
	m.Warm.version++
	w.checks.CheckReuse(m, spec)
	spec.Name, m.Spec = m.Spec.Name, spec
	m.enter(port.MachineCreating)
	w.checks.CheckSecrets(spec)
	w.checks.CheckLaunch(m)
	w.Note("%s is started for attempt %d of %s", m.ID, spec.Owner.Attempt, spec.Owner.RunID)
	f.startLater(m)
	return f.warmAnswer(m)
}

// startLater draws whether and when a warm machine starts.
func (f flyMachines) startLater(m *Machine) {
	w := f.Machines
	if w.Injects("program that never started", w.Plan.NeverStart) {
		return
	}
	w.addWorkers(m)
	begin := w.UpTo(2 * time.Second)
	switch {
	case w.Chance(w.WarmWays.Late):
		begin = 8*time.Second + w.UpTo(20*time.Second)
	case w.Chance(w.Plan.Immediate):
		begin = 0
	}
	w.soon(begin, m.start)
}

// warmAnswer is like answer for a warm machine.
func (f flyMachines) warmAnswer(m *Machine) (port.MachineStatus, error) {
	if !f.Injects("lost call", f.Plan.LostCalls) {
		return m.view(), nil
	}
	f.Note("response about %s is lost", m.ID)
	if m.Warm.Owned {
		f.UnknownMachines++
	}
	return port.MachineStatus{}, fault.New(fault.Unavailable, "response lost")
}

// WarmWays has the probabilities of faults of warm machines.
type WarmWays struct {
	// StuckCreated machines are never ready. noRoom is a host's refusal to start a machine.
	// late machines start after the start deadline. slow calls arrive late.
	StuckCreated, NoRoom, Late, Slow float64
}
