package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// machines is the simulated runner.
type machines struct {
	w    *world
	byID map[string]*machine
	// live are the machines that are not gone, in the order of their creation.
	live    []*machine
	created int
}

// machine is a simulated machine with its workers.
type machine struct {
	id        string
	spec      port.LaunchSpec
	phase     port.MachinePhase
	exit      *port.Exit
	visibleAt time.Time
	stopping  bool
	// changed fires when the phase changes.
	changed signal
	// stuckUntil is the time before which nothing ends the machine.
	stuckUntil time.Time
	// endedAt is when the machine was gone.
	endedAt time.Time
	// known: the record of its run has its id.
	known bool
	// unwantedAt is the time since which no run uses the machine; zero while
	// one does.
	unwantedAt time.Time
	workers    []*worker
}

func (m *machine) alive() bool { return m.phase != port.MachineGone }

func (m *machine) view() port.MachineStatus {
	return port.MachineStatus{Machine: port.Machine{Runner: "simulated", ID: m.id}, Name: m.spec.Name, Phase: m.phase, Owner: m.spec.Owner, Exit: m.exit}
}

// Launch implements port.Runner.
func (r *machines) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	plan, facts := r.w.plan, r.w.attempt(spec.Env["TASK_ID"], spec.Owner.Attempt)
	r.w.maybeCancel(spec.Env["TASK_ID"])
	if err := r.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	switch {
	case r.w.down(throttling), r.w.chance(plan.throttles):
		facts.longStart = true
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many machines created at once")
	case r.w.chance(plan.noCapacity):
		facts.longStart = true
		return port.MachineStatus{}, fault.New(fault.Capacity, "no capacity")
	}
	m := r.named(spec.Name)
	if m == nil {
		m = r.create(spec)
	}
	if r.w.chance(plan.lostCalls) {
		r.w.note("response about %s is lost", m.id)
		r.w.unknownMachines++
		return port.MachineStatus{}, fault.New(fault.Unavailable, "response lost")
	}
	return m.view(), nil
}

// maybeLost returns an error if the request is lost.
func (r *machines) maybeLost(ctx context.Context) error {
	r.w.maybeInterrupt()
	if err := interrupted(ctx); err != nil {
		return err
	}
	if r.w.down(runnerOutage) || r.w.chance(r.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	return nil
}

func (r *machines) named(name string) *machine {
	for _, m := range r.live {
		if m.spec.Name == name {
			return m
		}
	}
	return nil
}

func (r *machines) create(spec port.LaunchSpec) *machine {
	r.created++
	m := &machine{id: fmt.Sprintf("m%d", r.created), spec: spec, phase: port.MachineCreating}
	m.visibleAt = r.w.time.now
	if r.w.chance(r.w.plan.invisible) {
		m.visibleAt = m.visibleAt.Add(r.w.upTo(20 * time.Second))
		// A machine that is not visible before its start limit counts as gone.
		visibleBy := r.startBy(spec.Owner).Add(-2*r.w.plan.skew - 2*time.Second)
		m.visibleAt = clamp(m.visibleAt, r.w.time.now, visibleBy)
	}
	if r.w.chance(r.w.plan.stuck) {
		m.stuckUntil = r.w.time.now.Add(r.w.upTo(3 * time.Minute))
	}
	r.byID[m.id] = m
	r.live = append(r.live, m)
	r.w.checkSecrets(spec)
	r.w.checkLaunch(m)
	if r.w.chance(r.w.plan.strangers) {
		r.w.time.after(r.w.upTo(r.w.longest), func() { r.stopByStranger(m) })
	}
	r.w.note("%s is created for attempt %d of %s", m.id, spec.Owner.Attempt, spec.Owner.RunID)
	r.w.startWorkers(m)
	return m
}

// startBy returns the start limit of the attempt that a machine is created for, as it is
// stored. A run may be accepted, admitted and launched in one event. It is zero if a late
// call creates a machine for a run that cannot be read.
func (r *machines) startBy(of port.MachineOwner) (by time.Time) {
	r.w.observe(func() {
		if stored, err := r.w.process.store.Load(context.Background(), run.Ref{Tenant: of.Tenant, ID: of.RunID}); err == nil {
			by = stored.Attempt.StartBy
		}
	})
	return by
}

// Inspect implements port.Runner.
func (r *machines) Inspect(ctx context.Context, of port.Machine) (port.MachineStatus, error) {
	if err := r.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	m, ok := r.byID[of.ID]
	if !ok || r.w.time.now.Before(m.visibleAt) {
		return port.MachineStatus{}, port.ErrNotFound
	}
	return m.view(), nil
}

// Wait implements port.Runner. Other events run meanwhile.
func (r *machines) Wait(ctx context.Context, of port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	m, until := r.byID[of.ID], r.w.time.now.Add(limit)
	for m != nil && (m.phase == port.MachineCreating || phase == port.MachineGone && m.alive()) && until.After(r.w.time.now) && ctx.Err() == nil {
		r.w.time.await(until.Sub(r.w.time.now), &m.changed)
	}
	return r.Inspect(ctx, of)
}

// List implements port.Runner.
func (r *machines) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	if err := r.maybeLost(ctx); err != nil {
		return err
	}
	for _, m := range r.live {
		if !r.w.time.now.Before(m.visibleAt) && !each(m.view()) {
			break
		}
	}
	return nil
}

// Stop implements port.Runner.
func (r *machines) Stop(ctx context.Context, of port.Machine, grace time.Duration) error {
	if err := r.maybeLost(ctx); err != nil {
		return err
	}
	m, ok := r.byID[of.ID]
	if !ok || !m.alive() {
		return nil
	}
	r.stop(m, grace)
	return nil
}

func (r *machines) stop(m *machine, grace time.Duration) {
	m.stopping = true
	facts := r.w.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt)
	if facts.noticedAt.IsZero() {
		facts.noticedAt = r.w.time.now
	}
	for _, p := range m.workers {
		p.later(r.w.upTo(2*time.Second), p.terminate)
	}
	if m.phase == port.MachineCreating {
		grace = r.w.upTo(2 * time.Second)
	}
	r.w.time.after(grace, func() {
		r.w.checkKill(m)
		r.end(m, port.Exit{Code: 137, Signal: 9, Requested: true})
	})
}

// stopByStranger stops or destroys a machine from outside of Sortie.
func (r *machines) stopByStranger(m *machine) {
	if !m.alive() {
		return
	}
	r.w.note("a stranger stops %s", m.id)
	r.w.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt).strangers++
	if r.w.chance(0.5) {
		r.stop(m, r.w.upTo(10*time.Second))
		return
	}
	r.end(m, port.Exit{Code: 137, Signal: 9, Requested: true})
}

// Destroy implements port.Runner.
func (r *machines) Destroy(ctx context.Context, of port.Machine) error {
	if err := r.maybeLost(ctx); err != nil {
		return err
	}
	if m, ok := r.byID[of.ID]; ok && m.alive() {
		r.w.checkDestroy(m)
		r.w.maybeCancel(m.spec.Env["TASK_ID"])
		r.w.time.after(r.w.upTo(time.Second), func() { r.end(m, port.Exit{Code: 137, Signal: 9, Requested: true}) })
	}
	return nil
}

// end ends a machine, or schedules its end if it is stuck.
func (r *machines) end(m *machine, exit port.Exit) {
	if !m.alive() {
		return
	}
	if wait := m.stuckUntil.Sub(r.w.time.now); wait > 0 {
		m.phase = port.MachineEnding
		m.changed.fire()
		r.w.time.after(wait, func() { r.end(m, exit) })
		return
	}
	m.phase, m.endedAt = port.MachineGone, r.w.time.now
	m.changed.fire()
	r.live = slices.DeleteFunc(slices.Clone(r.live), func(one *machine) bool { return one == m })
	if !r.w.chance(r.w.plan.lostExits) {
		exit.At = r.w.time.now
		m.exit = &exit
	}
	if exit.Code == 0 {
		r.w.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt).exitedZero = true
	}
	r.w.note("%s is gone, code %d", m.id, exit.Code)
}

// clamp returns the time, but not after the latest, and not before the earliest.
func clamp(at, earliest, latest time.Time) time.Time {
	if at.After(latest) {
		at = latest
	}
	if at.Before(earliest) {
		at = earliest
	}
	return at
}
