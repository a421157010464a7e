package orchestrator_test

import (
	"context"
	"fmt"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Prepare implements port.WarmMachines.
func (r *runner) Prepare(_ context.Context, spec port.WarmSpec) (port.MachineStatus, error) {
	if !r.take(spec.App) {
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many machines")
	}
	m := &machine{spec: port.LaunchSpec{Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB}, MachineStatus: port.MachineStatus{
		Machine: port.Machine{Runner: "fly", App: "app", ID: fmt.Sprintf("m%d", len(r.launched)+1)},
		Name:    spec.Name, Warm: spec.Warm, Phase: port.MachineEnding, Digest: r.digest,
	}}
	r.launched = append(r.launched, m)
	return m.MachineStatus, nil
}

// StartWarm implements port.WarmMachines.
func (r *runner) StartWarm(_ context.Context, at port.Machine, spec port.LaunchSpec) (port.MachineStatus, error) {
	if do := r.beforeWarm; do != nil {
		r.beforeWarm = nil
		do()
	}
	m := r.find(at)
	switch {
	case m == nil || m.Phase == port.MachineGone:
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "no such machine")
	case m.Owner == spec.Owner:
		return m.MachineStatus, nil
	case m.Warm.ID == "" || m.Warm.Tenant != spec.Owner.Tenant:
		r.h.Errorf("got a start of machine %s of %+v for %+v", at.ID, m.MachineStatus, spec.Owner)
	}
	m.Owner, m.Warm, m.spec, m.Phase = spec.Owner, run.WarmRef{}, spec, port.MachineCreating
	r.warmStarts++
	if do := r.during; do != nil {
		r.during = nil
		if err := do(m); err != nil {
			return port.MachineStatus{}, err
		}
	}
	return m.MachineStatus, nil
}

// WarmMachines implements port.Store.
func (s *store) WarmMachines(ctx context.Context, ref run.PoolRef) ([]run.WarmMachine, error) {
	have, err := s.Store.WarmMachines(ctx, ref)
	if do := s.afterWarm; do != nil {
		s.afterWarm = nil
		do()
	}
	return have, err
}
