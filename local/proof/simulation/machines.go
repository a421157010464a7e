package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// machines is the simulated runner.
type machines struct {
	w       *world
	byID    map[string]*machine
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
	// stuckUntil is the time before which nothing ends the machine.
	stuckUntil time.Time
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
func (r *machines) Launch(_ context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	plan := r.w.plan
	r.w.maybeCancel(spec.Env["TASK_ID"])
	switch {
	case r.w.chance(plan.throttles):
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many machines created at once")
	case r.w.chance(plan.noCapacity):
		return port.MachineStatus{}, fault.New(fault.Capacity, "no capacity")
	case r.w.chance(plan.lostCalls):
		return port.MachineStatus{}, fault.New(fault.Unavailable, "request lost")
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

func (r *machines) named(name string) *machine {
	for _, m := range r.byID {
		if m.alive() && m.spec.Name == name {
			return m
		}
	}
	return nil
}

func (r *machines) create(spec port.LaunchSpec) *machine {
	r.created++
	m := &machine{id: fmt.Sprintf("m%d", r.created), spec: spec, phase: port.MachineCreating}
	m.visibleAt = r.w.time.Now()
	if r.w.chance(r.w.plan.invisible) {
		m.visibleAt = m.visibleAt.Add(r.w.upTo(20 * time.Second))
	}
	if r.w.chance(r.w.plan.stuck) {
		m.stuckUntil = r.w.time.Now().Add(r.w.upTo(3 * time.Minute))
	}
	r.byID[m.id] = m
	r.w.checkSecrets(spec)
	r.w.note("%s is created for attempt %d of %s", m.id, spec.Owner.Attempt, spec.Owner.RunID)
	r.w.startWorkers(m)
	return m
}

// Inspect implements port.Runner.
func (r *machines) Inspect(_ context.Context, of port.Machine) (port.MachineStatus, error) {
	if r.w.chance(r.w.plan.lostCalls) {
		return port.MachineStatus{}, fault.New(fault.Unavailable, "request lost")
	}
	m, ok := r.byID[of.ID]
	if !ok || r.w.time.Now().Before(m.visibleAt) {
		return port.MachineStatus{}, port.ErrNotFound
	}
	return m.view(), nil
}

// Wait implements port.Runner. Simulated events run meanwhile.
func (r *machines) Wait(ctx context.Context, of port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	if m, ok := r.byID[of.ID]; ok {
		r.w.time.runUntil(r.w.time.Now().Add(limit), func() bool {
			return m.phase == phase || m.phase == port.MachineGone
		})
	}
	return r.Inspect(ctx, of)
}

// List implements port.Runner.
func (r *machines) List(_ context.Context, each func(port.MachineStatus) bool) error {
	if r.w.chance(r.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	var list []port.MachineStatus
	for i := range r.created {
		m := r.byID[fmt.Sprintf("m%d", i+1)]
		if m.alive() && !r.w.time.Now().Before(m.visibleAt) {
			list = append(list, m.view())
		}
	}
	for _, m := range list {
		if !each(m) {
			break
		}
	}
	return nil
}

// Stop implements port.Runner.
func (r *machines) Stop(_ context.Context, of port.Machine, grace time.Duration) error {
	if r.w.chance(r.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	m, ok := r.byID[of.ID]
	if !ok || !m.alive() {
		return nil
	}
	m.stopping = true
	for _, p := range m.workers {
		p.later(r.w.upTo(2*time.Second), p.terminate)
	}
	if m.phase == port.MachineCreating {
		grace = r.w.upTo(2 * time.Second)
	}
	r.w.time.after(grace, func() { r.end(m, port.Exit{Code: 137, Signal: 9, Requested: true}) })
	return nil
}

// Destroy implements port.Runner.
func (r *machines) Destroy(_ context.Context, of port.Machine) error {
	if r.w.chance(r.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	if m, ok := r.byID[of.ID]; ok && m.alive() {
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
	if wait := m.stuckUntil.Sub(r.w.time.Now()); wait > 0 {
		m.phase = port.MachineEnding
		r.w.time.after(wait, func() { r.end(m, exit) })
		return
	}
	m.phase = port.MachineGone
	if !r.w.chance(r.w.plan.lostExits) {
		exit.At = r.w.time.Now()
		m.exit = &exit
	}
	r.w.note("%s is gone, code %d", m.id, exit.Code)
}
