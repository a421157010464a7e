package machines

import (
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Machines are the machines of all platforms, with their workers.
type Machines struct {
	*harness.Base
	// checks are the invariants that hold when something happens to a machine.
	checks Checks
	// Ways are the faults of the platforms of a mixed world, and warmWays those of warm machines.
	Ways     ways
	WarmWays WarmWays
	// Engine is one of the platforms in a mixed world.
	Engine *containers

	ByID map[string]*Machine
	// Live are the machines that are not gone, in the order of creation. kept are those that
	// are stopped after an attempt and not yet recycled.
	Live    []*Machine
	Kept    []*Machine
	Created int
	// Recycled counts the recycling calls. unknownMachines counts the machines whose creation
	// was not reported.
	Recycled, UnknownMachines int
	// attempts are the facts about attempts that their workers and platforms know. calls counts
	// the calls of workers, and renewals the tokens that they renewed.
	attempts        map[attemptKey]*AttemptFacts
	Calls, Renewals int
}

// Checks are the invariants of machines and workers. They are checked when something happens, in
// the task that causes it.
type Checks interface {
	// CheckLaunch and CheckSecrets are called after a machine was created for an attempt, or was
	// started for one.
	CheckLaunch(m *Machine)
	CheckSecrets(spec port.LaunchSpec)
	// CheckCold is called before a machine is created for an attempt, and CheckStartWarm and
	// CheckReuse before one that was created earlier is started.
	CheckCold(spec port.LaunchSpec)
	CheckStartWarm(m *Machine, spec port.LaunchSpec)
	CheckReuse(m *Machine, spec port.LaunchSpec)
	// CheckRecycle is called before a machine is recycled.
	CheckRecycle(m *Machine, spec port.WarmSpec)
	// CheckRuns is called when a program starts.
	CheckRuns(m *Machine)
	// CheckDestroy is called before a machine is destroyed, CheckEndsRecord before one that was
	// kept after its attempt, and CheckKill before a program is killed.
	CheckDestroy(m *Machine)
	CheckEndsRecord(m *Machine)
	CheckKill(m *Machine)
	// CheckDeadline is called when a worker begins that obeys the deadline of its envelope.
	CheckDeadline(p *Worker)
	// CheckCall is called after each call of a worker that got an answer, with the records
	// before and after it.
	CheckCall(p *Worker, c Call, reply Answer, before, after run.Run, calledAt time.Time)
}

// New returns the machines of a world, which are created by launches.
func New(w *harness.Base, c Checks) *Machines {
	return &Machines{Base: w, checks: c, ByID: map[string]*Machine{}, attempts: map[attemptKey]*AttemptFacts{}}
}

// Machine is a simulated machine with its workers.
type Machine struct {
	ID    string
	On    *provider
	Spec  port.LaunchSpec
	Phase port.MachinePhase
	Exit  *port.Exit
	// startFault is the reason why the platform does not start it.
	startFault *fault.Fault
	VisibleAt  time.Time
	// AddressedAt is when the platform reports its address.
	AddressedAt time.Time
	stopping    bool
	// removed means that a stranger destroyed it.
	removed bool
	// Destroyed means that its name is free. erased means that its platform drops it once it
	// has ended.
	Destroyed, Erased bool
	// changed fires when the phase changes.
	changed harness.Signal
	// seen has its status at each change, for platforms with lagging reads.
	seen []seenStatus
	// stuckUntil is the earliest time at which the machine can end.
	stuckUntil time.Time
	// RanAt is when its program started. endedAt is when the machine was gone. failed means
	// that its program ended by itself.
	RanAt, EndedAt time.Time
	// NeededAt is when its attempt was last seen as the current one after the machine had
	// ended.
	NeededAt time.Time
	Failed   bool
	// Warm has the facts of a machine that was created stopped; nil for other machines.
	Warm *warmFacts
	// Known means that the record of its run has its id.
	Known bool
	// UnwantedAt is the time since which no run uses the machine; zero while one does.
	UnwantedAt time.Time
	Workers    []*Worker
}

// Alive reports whether the machine is not gone.
func (m *Machine) Alive() bool { return m.Phase != port.MachineGone }

func (m *Machine) view() port.MachineStatus {
	s := port.MachineStatus{Machine: port.Machine{Runner: m.On.Runner, ID: m.ID}, Name: m.Spec.Name, Phase: m.Phase, Owner: m.Spec.Owner, Exit: m.Exit}
	if m.On.Serves() && !m.On.Time.Now.Before(m.AddressedAt) {
		s.Address = "10.0.0.1"
	}
	if m.RanAt.IsZero() && !m.stopping && !m.Destroyed {
		s.StartFault = m.startFault
	}
	switch {
	case m.Idle():
		s.Warm, s.Exit = m.Warm.Spec.Warm, nil
		s.Version = m.Warm.versionName()
	case m.Warm != nil:
		s.Started = !m.RanAt.IsZero()
		if m.Spec.Reuse.ID != "" {
			s.Version = m.Warm.versionName()
		}
		if m.Alive() || m.IsKept() {
			s.Reuse = m.Spec.Reuse
		}
	}
	return s
}

// enter changes the phase.
func (m *Machine) enter(phase port.MachinePhase) {
	m.Phase = phase
	m.change()
}

// change records a changed status.
func (m *Machine) change() {
	if m.On.lagging {
		m.seen = append(m.seen, seenStatus{m.On.Time.Now, m.view()})
	}
	m.changed.Fire()
}
