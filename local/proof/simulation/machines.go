package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// machines is the runner of the world.
type machines struct {
	w    *world
	byID map[string]*machine
	made int
}

// machine is one of them, and the worker in it.
type machine struct {
	id        string
	spec      port.LaunchSpec
	phase     port.MachinePhase
	exit      *port.Exit
	visibleAt time.Time
	stopping  bool
	// stuck: it ignores what would end it until then.
	stuckUntil time.Time
	// unwantedAt is since when no run wants it; zero while one does.
	unwantedAt time.Time
	workers    []*worker
}

func (m *machine) alive() bool { return m.phase != port.MachineGone }

func (m *machine) view() port.Machine {
	return port.Machine{ID: m.id, Name: m.spec.Name, Phase: m.phase, Owner: m.spec.Owner, Exit: m.exit}
}

// Launch implements port.Runner.
func (r *machines) Launch(_ context.Context, spec port.LaunchSpec) (port.Machine, error) {
	plan := r.w.plan
	r.w.meddle(spec.Env["TASK_ID"])
	switch {
	case r.w.chance(plan.throttles):
		return port.Machine{}, fault.New(fault.Throttled, "too many machines are made at once")
	case r.w.chance(plan.noCapacity):
		return port.Machine{}, fault.New(fault.Capacity, "there is no room")
	case r.w.chance(plan.lostCalls):
		return port.Machine{}, fault.New(fault.Unavailable, "the call was lost")
	}
	m := r.named(spec.Name)
	if m == nil {
		m = r.create(spec)
	}
	if r.w.chance(plan.lostCalls) {
		r.w.note("the answer about %s is lost", m.id)
		r.w.strays++
		return port.Machine{}, fault.New(fault.Unavailable, "the answer was lost")
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
	r.made++
	m := &machine{id: fmt.Sprintf("app/m%d", r.made), spec: spec, phase: port.MachineCreating}
	m.visibleAt = r.w.time.Now()
	if r.w.chance(r.w.plan.invisible) {
		m.visibleAt = m.visibleAt.Add(r.w.upTo(20 * time.Second))
	}
	if r.w.chance(r.w.plan.stuck) {
		m.stuckUntil = r.w.time.Now().Add(r.w.upTo(3 * time.Minute))
	}
	r.byID[m.id] = m
	r.w.checkSecrets(spec)
	r.w.note("%s is made for attempt %d of %s", m.id, spec.Owner.Attempt, spec.Owner.RunID)
	r.w.employ(m)
	return m
}

// Inspect implements port.Runner.
func (r *machines) Inspect(_ context.Context, id string) (port.Machine, error) {
	if r.w.chance(r.w.plan.lostCalls) {
		return port.Machine{}, fault.New(fault.Unavailable, "the call was lost")
	}
	m, ok := r.byID[id]
	if !ok || r.w.time.Now().Before(m.visibleAt) {
		return port.Machine{}, port.ErrNotFound
	}
	return m.view(), nil
}

// Wait implements port.Runner: the world goes on meanwhile.
func (r *machines) Wait(ctx context.Context, id string, phase port.MachinePhase, limit time.Duration) (port.Machine, error) {
	if m, ok := r.byID[id]; ok {
		r.w.time.until(r.w.time.Now().Add(limit), func() bool {
			return m.phase == phase || m.phase == port.MachineGone
		})
	}
	return r.Inspect(ctx, id)
}

// List implements port.Runner.
func (r *machines) List(context.Context) ([]port.Machine, error) {
	if r.w.chance(r.w.plan.lostCalls) {
		return nil, fault.New(fault.Unavailable, "the call was lost")
	}
	var list []port.Machine
	for i := range r.made {
		m := r.byID[fmt.Sprintf("app/m%d", i+1)]
		if m.alive() && !r.w.time.Now().Before(m.visibleAt) {
			list = append(list, m.view())
		}
	}
	return list, nil
}

// Stop implements port.Runner.
func (r *machines) Stop(_ context.Context, id string, grace time.Duration) error {
	if r.w.chance(r.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "the call was lost")
	}
	m, ok := r.byID[id]
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
func (r *machines) Destroy(_ context.Context, id string) error {
	if r.w.chance(r.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "the call was lost")
	}
	if m, ok := r.byID[id]; ok && m.alive() {
		r.w.meddle(m.spec.Env["TASK_ID"])
		r.w.time.after(r.w.upTo(time.Second), func() { r.end(m, port.Exit{Code: 137, Signal: 9, Requested: true}) })
	}
	return nil
}

// end makes a machine be gone, later where it is stuck.
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
