package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// machines are the machines of all platforms, with their workers.
type machines struct {
	*harness.Base
	// checks are the invariants that hold when something happens to a machine.
	checks checks
	// ways are the faults of the platforms of a mixed world, and warmWays those of warm machines.
	ways     ways
	warmWays warmWays
	// engine is one of the platforms in a mixed world.
	engine *containers

	byID map[string]*machine
	// live are the machines that are not gone, in the order of creation. kept are those that
	// are stopped after an attempt and not yet recycled.
	live    []*machine
	kept    []*machine
	created int
	// recycled counts the recycling calls. unknownMachines counts the machines whose creation
	// was not reported.
	recycled, unknownMachines int
	// attempts are the facts about attempts that their workers and platforms know. calls counts
	// the calls of workers, and renewals the tokens that they renewed.
	attempts        map[attemptKey]*attemptFacts
	calls, renewals int
}

// checks are the invariants of machines and workers. They are checked when something happens, in
// the task that causes it.
type checks interface {
	// CheckLaunch and CheckSecrets are called after a machine was created for an attempt, or was
	// started for one.
	CheckLaunch(m *machine)
	CheckSecrets(spec port.LaunchSpec)
	// CheckCold is called before a machine is created for an attempt, and CheckStartWarm and
	// CheckReuse before one that was created earlier is started.
	CheckCold(spec port.LaunchSpec)
	CheckStartWarm(m *machine, spec port.LaunchSpec)
	CheckReuse(m *machine, spec port.LaunchSpec)
	// CheckRecycle is called before a machine is recycled.
	CheckRecycle(m *machine, spec port.WarmSpec)
	// CheckRuns is called when a program starts.
	CheckRuns(m *machine)
	// CheckDestroy is called before a machine is destroyed, CheckEndsRecord before one that was
	// kept after its attempt, and CheckKill before a program is killed.
	CheckDestroy(m *machine)
	CheckEndsRecord(m *machine)
	CheckKill(m *machine)
	// CheckDeadline is called when a worker begins that obeys the deadline of its envelope.
	CheckDeadline(p *worker)
	// CheckCall is called after each call of a worker that got an answer, with the records
	// before and after it.
	CheckCall(p *worker, c call, reply answer, before, after run.Run, calledAt time.Time)
}

// newMachines returns a world's machines. There are none at first.
func newMachines(w *harness.Base, c checks) *machines {
	return &machines{Base: w, checks: c, byID: map[string]*machine{}, attempts: map[attemptKey]*attemptFacts{}}
}

// machine is a simulated machine with its workers.
type machine struct {
	id    string
	on    *provider
	spec  port.LaunchSpec
	phase port.MachinePhase
	exit  *port.Exit
	// startFault is the reason why the platform does not start it.
	startFault *fault.Fault
	visibleAt  time.Time
	// addressedAt is when the platform reports its address.
	addressedAt time.Time
	stopping    bool
	// removed means that a stranger destroyed it.
	removed bool
	// destroyed means that its name is free. erased means that its platform drops it once it
	// has ended.
	destroyed, erased bool
	// changed fires when the phase changes.
	changed harness.Signal
	// seen has its status at each change, for platforms with lagging reads.
	seen []seenStatus
	// stuckUntil is the earliest time at which the machine can end.
	stuckUntil time.Time
	// ranAt is when its program started. endedAt is when the machine was gone. failed means
	// that its program ended by itself.
	ranAt, endedAt time.Time
	// neededAt is when its attempt was last seen as the current one after the machine had
	// ended.
	neededAt time.Time
	failed   bool
	// warm has the facts of a machine that was created stopped; nil for other machines.
	warm *warmFacts
	// known means that the record of its run has its id.
	known bool
	// unwantedAt is the time since which no run uses the machine; zero while one does.
	unwantedAt time.Time
	workers    []*worker
}

func (m *machine) alive() bool { return m.phase != port.MachineGone }

func (m *machine) view() port.MachineStatus {
	s := port.MachineStatus{Machine: port.Machine{Runner: m.on.runner, ID: m.id}, Name: m.spec.Name, Phase: m.phase, Owner: m.spec.Owner, Exit: m.exit}
	if m.on.Serves() && !m.on.Time.Now.Before(m.addressedAt) {
		s.Address = "10.0.0.1"
	}
	if m.ranAt.IsZero() && !m.stopping && !m.destroyed {
		s.StartFault = m.startFault
	}
	switch {
	case m.idle():
		s.Warm, s.Exit = m.warm.spec.Warm, nil
		s.Version = m.warm.versionName()
	case m.warm != nil:
		s.Started = !m.ranAt.IsZero()
		if m.spec.Reuse.ID != "" {
			s.Version = m.warm.versionName()
		}
		if m.alive() || m.isKept() {
			s.Reuse = m.spec.Reuse
		}
	}
	return s
}

// enter changes the phase.
func (m *machine) enter(phase port.MachinePhase) {
	m.phase = phase
	m.change()
}

// change records a changed status.
func (m *machine) change() {
	if m.on.lagging {
		m.seen = append(m.seen, seenStatus{m.on.Time.Now, m.view()})
	}
	m.changed.Fire()
}

// provider is a simulated runner.
type provider struct {
	*machines
	// runner is its name in placements and machine records.
	runner string
	// away is the outage during which its API does not answer.
	away harness.Outage
	// lagging means that its reads show earlier states.
	lagging bool
}

// newProvider returns a platform whose API fails during the outage away.
func newProvider(w *machines, runner string, away harness.Outage) *provider {
	return &provider{machines: w, runner: runner, away: away}
}

// Launch implements port.Runner.
func (r *provider) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	r.Watch.DuringCall(spec.Env["TASK_ID"])
	if err := r.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	switch {
	case r.Down(harness.Throttling), r.Chance(r.Plan.Throttles):
		return port.MachineStatus{}, r.refuse(spec, fault.Throttled, "too many machines created at once")
	case r.Chance(r.Plan.NoCapacity):
		return port.MachineStatus{}, r.refuse(spec, fault.Capacity, "no capacity")
	}
	m := r.named(spec.Name)
	if m == nil {
		m = r.create(spec)
		r.startWorkers(m)
	}
	return r.answer(m)
}

// refuse returns the fault of a launch and records it for the attempt.
func (r *provider) refuse(spec port.LaunchSpec, code fault.Code, message string) *fault.Fault {
	facts := r.attempt(spec.Env["TASK_ID"], spec.Owner.Attempt)
	facts.longStart = true
	facts.refusals = append(facts.refusals, refusal{r.Time.Now, r.runner, code, message})
	return fault.New(code, "%s", message)
}

// answer returns the machine of a launch. The response can be lost.
func (r *provider) answer(m *machine) (port.MachineStatus, error) {
	if r.Chance(r.Plan.LostCalls) {
		r.Note("response about %s is lost", m.id)
		r.unknownMachines++
		return port.MachineStatus{}, fault.New(fault.Unavailable, "response lost")
	}
	return m.view(), nil
}

// maybeLost returns an error if the request is lost.
func (r *provider) maybeLost(ctx context.Context) error {
	r.MaybeInterrupt()
	if err := harness.Interrupted(ctx); err != nil {
		return err
	}
	if r.Down(r.away) || r.Chance(r.Plan.LostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	return nil
}

func (r *provider) named(name string) *machine {
	for _, m := range r.live {
		if m.on == r && m.spec.Name == name {
			return m
		}
	}
	return nil
}

// create creates a machine that is not started.
func (r *provider) create(spec port.LaunchSpec) *machine {
	r.created++
	m := &machine{id: fmt.Sprintf("m%d", r.created), on: r, spec: spec, phase: port.MachineCreating}
	m.visibleAt = r.Time.Now
	if r.Chance(r.Plan.Invisible) {
		m.visibleAt = m.visibleAt.Add(r.UpTo(20 * time.Second))
		// A machine that is not visible by its start limit would count as gone.
		visibleBy := r.startBy(spec.Owner).Add(-2*r.Plan.Skew - 2*time.Second)
		m.visibleAt = clamp(m.visibleAt, r.Time.Now, visibleBy)
	}
	if r.Chance(r.Plan.Stuck) {
		m.stuckUntil = r.Time.Now.Add(r.UpTo(3 * time.Minute))
	}
	if r.Serves() && r.Chance(0.2) {
		m.addressedAt = r.Time.Now.Add(r.UpTo(time.Minute))
	}
	r.byID[m.id] = m
	r.live = append(r.live, m)
	m.change()
	r.checks.CheckSecrets(spec)
	r.checks.CheckLaunch(m)
	if r.Chance(r.Plan.Strangers) {
		r.Time.After(r.UpTo(r.Longest), func() { r.stopByStranger(m) })
	}
	r.Note("%s is created for attempt %d of %s", m.id, spec.Owner.Attempt, spec.Owner.RunID)
	return m
}

// startBy returns the stored start limit of the attempt for which a machine is created. A run
// may be accepted, admitted and launched in one event. It is zero if a late call creates a
// machine for a run that cannot be read.
func (r *machines) startBy(of port.MachineOwner) (by time.Time) {
	r.Observe(func() {
		if stored, err := r.Process.Store.Load(context.Background(), run.Ref{Tenant: of.Tenant, ID: of.RunID}); err == nil {
			by = stored.Attempt.StartBy
		}
	})
	return by
}

// own returns a machine of the platform, or nil if the platform does not have it.
func (r *provider) own(of port.Machine) *machine {
	if m := r.byID[of.ID]; m != nil && m.on == r {
		return m
	}
	return nil
}

// Inspect implements port.Runner.
func (r *provider) Inspect(ctx context.Context, of port.Machine) (port.MachineStatus, error) {
	if err := r.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	m := r.own(of)
	if m == nil || m.erased && !m.alive() || r.Time.Now.Before(m.visibleAt) {
		return port.MachineStatus{}, port.ErrNotFound
	}
	return m.view(), nil
}

// Wait implements port.Runner. Other events run during the wait.
func (r *provider) Wait(ctx context.Context, of port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	r.await(ctx, r.own(of), phase, limit)
	return r.Inspect(ctx, of)
}

// await waits until a machine is in the phase, cannot reach it, or limit has passed.
func (r *provider) await(ctx context.Context, m *machine, phase port.MachinePhase, limit time.Duration) {
	until := r.Time.Now.Add(limit)
	for m != nil && (m.phase == port.MachineCreating && m.view().StartFault == nil || phase == port.MachineGone && m.alive()) &&
		until.After(r.Time.Now) && ctx.Err() == nil {
		r.Time.Await(until.Sub(r.Time.Now), &m.changed)
	}
}

// List implements port.Runner.
func (r *provider) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	if err := r.maybeLost(ctx); err != nil {
		return err
	}
	for _, m := range r.live {
		if m.on == r && !r.Time.Now.Before(m.visibleAt) && !each(m.view()) {
			break
		}
	}
	for _, m := range r.kept {
		if m.on == r && !each(m.view()) {
			break
		}
	}
	return nil
}

// Stop implements port.Runner.
func (r *provider) Stop(ctx context.Context, of port.Machine, grace time.Duration) error {
	if err := r.maybeLost(ctx); err != nil {
		return err
	}
	m := r.own(of)
	if m == nil || !m.alive() || m.warm != nil && of.Version != "" && of.Version != m.warm.versionName() {
		return nil
	}
	r.stop(m, grace)
	return nil
}

func (r *machines) stop(m *machine, grace time.Duration) {
	m.stopping = true
	facts := r.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt)
	if facts.noticedAt.IsZero() {
		facts.noticedAt = r.Time.Now
	}
	for _, p := range m.workers {
		p.later(r.UpTo(2*time.Second), p.terminate)
	}
	if m.phase == port.MachineCreating {
		grace = r.UpTo(2 * time.Second)
	}
	r.Time.After(grace, func() {
		r.checks.CheckKill(m)
		r.end(m, port.Exit{Code: 137, Signal: 9, Requested: true})
	})
}

// stopByStranger stops or destroys a machine from outside of Sortie.
func (r *machines) stopByStranger(m *machine) {
	if !m.alive() {
		return
	}
	r.Note("a stranger stops %s", m.id)
	r.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt).strangers++
	if r.Chance(0.5) {
		r.stop(m, r.UpTo(10*time.Second))
		return
	}
	m.removed = true
	r.end(m, port.Exit{Code: 137, Signal: 9, Requested: true})
}

// Destroy implements port.Runner.
func (r *provider) Destroy(ctx context.Context, of port.Machine) error {
	if err := r.maybeLost(ctx); err != nil {
		return err
	}
	if m := r.own(of); m != nil && m.alive() {
		r.checks.CheckDestroy(m)
		r.Watch.DuringCall(m.spec.Env["TASK_ID"])
		if stored, ok := r.StoredRun(m.spec.Owner); ok && m.warm != nil && stored.State == run.ContainerCreating {
			r.attempt(stored.TaskID, m.spec.Owner.Attempt).withdrawn = true
		}
		r.destroy(m)
	} else if m != nil && m.isKept() {
		r.checks.CheckEndsRecord(m)
		r.drop(m)
	}
	return nil
}

func (r *machines) destroy(m *machine) {
	m.destroyed = true
	r.Time.After(r.UpTo(time.Second), func() { r.end(m, port.Exit{Code: 137, Signal: 9, Requested: true}) })
}

// end ends a machine. If the machine is stuck, it schedules the end.
func (r *machines) end(m *machine, exit port.Exit) {
	if !m.alive() {
		return
	}
	if wait := m.stuckUntil.Sub(r.Time.Now); wait > 0 {
		m.enter(port.MachineEnding)
		r.Time.After(wait, func() { r.end(m, exit) })
		return
	}
	m.phase, m.endedAt = port.MachineGone, r.Time.Now
	r.live = slices.DeleteFunc(slices.Clone(r.live), func(one *machine) bool { return one == m })
	if !r.Chance(r.Plan.LostExits) {
		exit.At = r.Time.Now
		m.exit = &exit
	}
	if m.spec.Reuse.ID != "" && !m.destroyed && !m.removed {
		r.kept = append(r.kept, m)
	}
	m.failed = !exit.Requested && exit.Code != 0
	m.change()
	if exit.Code == 0 {
		r.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt).exitedZero = true
	}
	r.Note("%s is gone, code %d", m.id, exit.Code)
}

// clamp limits at to latest, and then to earliest.
func clamp(at, earliest, latest time.Time) time.Time {
	if at.After(latest) {
		at = latest
	}
	if at.Before(earliest) {
		at = earliest
	}
	return at
}
