package machines

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// containers is a simulated container engine with its adapter. A machine is a container, which
// is first created and then started.
type containers struct {
	*provider
	made []*Machine
}

func newContainers(w *Machines, runner string) *containers {
	return &containers{provider: newProvider(w, runner, harness.EngineOutage)}
}

// named returns the container with the name, even if its program has ended by itself.
func (e *containers) named(name string) *Machine {
	for _, m := range e.made {
		if m.Spec.Name == name && !m.Erased && !m.Destroyed && (m.Alive() || !m.stopping) {
			return m
		}
	}
	return nil
}

// Launch implements port.Runner. If a container with the name exists, it starts that one,
// unless its program has already run.
func (e *containers) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	w := e.Machines
	w.Watch.DuringCall(spec.Env["TASK_ID"])
	if err := e.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	m := e.named(spec.Name)
	if m == nil {
		switch {
		case w.Chance(w.Ways.TooMany):
			return port.MachineStatus{}, e.refuse(spec, fault.Throttled, "too many requests to the registry")
		case w.Chance(w.Ways.badImage):
			return port.MachineStatus{}, e.refuse(spec, fault.Image, "manifest unknown")
		case w.Chance(w.Ways.quota):
			return port.MachineStatus{}, e.refuse(spec, fault.Capacity, "no space left on device")
		}
		m = e.create(spec)
		e.made = append(e.made, m)
		w.addWorkers(m)
		if w.Injects("lost call", w.Plan.LostCalls) {
			w.Note("%s is created and not started", m.ID)
			w.UnknownMachines++
			return port.MachineStatus{}, fault.New(fault.Unavailable, "the engine did not answer")
		}
	}
	if m.Phase == port.MachineCreating && !m.stopping {
		if w.Chance(w.Ways.startRefused) {
			return port.MachineStatus{}, e.notStarted(spec, m)
		}
		m.start()
	}
	return e.answer(m)
}

// notStarted removes a container that the engine cannot start. It returns the fault of the
// launch.
func (e *containers) notStarted(spec port.LaunchSpec, m *Machine) error {
	if e.Injects("lost call", e.Plan.LostCalls) {
		return fault.New(fault.Unavailable, "cannot remove the container that cannot start")
	}
	m.Destroyed = true
	facts := e.Attempt(spec.Env["TASK_ID"], spec.Owner.Attempt)
	facts.Machines--
	m.stuckUntil = time.Time{}
	e.end(m, port.Exit{Code: 128, Requested: true})
	if e.Chance(0.5) {
		return e.refuse(spec, fault.Capacity, "cannot allocate memory")
	}
	return e.refuse(spec, fault.Image, "exec format error")
}

// Die ends all containers, like the end of an engine without live restore.
func (e *containers) Die() {
	for _, m := range e.made {
		if m.Alive() && m.Phase == port.MachineRunning {
			e.end(m, port.Exit{Code: 137})
		}
	}
}

// Inspect implements port.Runner. The engine reports an exit after a delay of one second.
func (e *containers) Inspect(ctx context.Context, of port.Machine) (port.MachineStatus, error) {
	s, err := e.provider.Inspect(ctx, of)
	if m := e.own(of); err == nil && s.Phase == port.MachineGone && e.Time.Now.Sub(m.EndedAt) < time.Second {
		s.Phase, s.Exit = port.MachineEnding, nil
	}
	return s, err
}

// Wait implements port.Runner. Only Inspect reports an exit.
func (e *containers) Wait(ctx context.Context, of port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	until := e.Time.Now.Add(limit)
	m := e.own(of)
	e.await(ctx, m, phase, limit)
	if m != nil && !m.Alive() {
		if wait := min(m.EndedAt.Add(time.Second).Sub(e.Time.Now), until.Sub(e.Time.Now)); wait > 0 {
			e.Time.Sleep(wait)
		}
	}
	return e.Inspect(ctx, of)
}
