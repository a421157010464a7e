package runs_test

import (
	"context"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// recycler is the part of the runner that recycles machines.
type recycler struct {
	// lagging are outdated states of machines that List returns too.
	lagging []port.MachineStatus
	// beforeRecycle is called, once, before a machine is recycled, duringRecycle after it.
	beforeRecycle, duringRecycle func() error
}

func (r *recycler) listLagging(each func(port.MachineStatus) bool) {
	for _, m := range r.lagging {
		each(m)
	}
}

// Prepare implements port.WarmMachines.
func (r *runner) Prepare(_ context.Context, spec port.WarmSpec) (port.MachineStatus, error) {
	if !r.take(spec.App) {
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many machines")
	}
	m := &machine{spec: port.LaunchSpec{Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB}, MachineStatus: port.MachineStatus{
		Machine: port.Machine{Runner: "fly", App: "app", ID: fmt.Sprintf("m%d", len(r.launched)+1), Version: "v1"},
		Name:    spec.Name, Warm: spec.Warm, Phase: port.MachineEnding, Digest: r.digest,
	}}
	r.launched = append(r.launched, m)
	return m.MachineStatus, nil
}

// StartWarm implements port.WarmMachines.
func (r *runner) StartWarm(_ context.Context, at port.Machine, spec port.LaunchSpec) (port.MachineStatus, error) {
	if do := r.beforeWarm; do != nil {
		r.beforeWarm = nil
		if err := do(); err != nil {
			return port.MachineStatus{}, err
		}
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
	if spec.Reuse.ID != "" && at.Version != m.Version {
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine has another version")
	}
	m.Owner, m.Warm, m.Reuse, m.spec, m.Phase, m.Exit = spec.Owner, platform.WarmRef{}, spec.Reuse, spec, port.MachineCreating, nil
	if m.Version += "'"; spec.Reuse.ID == "" {
		m.Version = ""
	}
	r.warmStarts++
	if do := r.during; do != nil {
		r.during = nil
		if err := do(m); err != nil {
			return port.MachineStatus{}, err
		}
	}
	return m.MachineStatus, nil
}

// Recycle implements port.WarmMachines.
func (r *runner) Recycle(_ context.Context, at port.Machine, spec port.WarmSpec) (port.MachineStatus, error) {
	if do := r.beforeRecycle; do != nil {
		r.beforeRecycle = nil
		if err := do(); err != nil {
			return port.MachineStatus{}, err
		}
	}
	m := r.find(at)
	switch {
	case m.Warm == spec.Warm:
		return m.MachineStatus, nil
	case m.Phase != port.MachineGone || m.Reuse != spec.Warm || m.Version != at.Version:
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the machine is %s", m.Phase)
	}
	m.spec = port.LaunchSpec{Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB}
	m.Owner, m.Warm, m.Reuse, m.Phase, m.Exit = port.MachineOwner{}, spec.Warm, platform.WarmRef{}, port.MachineEnding, nil
	m.Version, m.Digest = m.Version+"'", r.digest
	if do := r.duringRecycle; do != nil {
		r.duringRecycle = nil
		if err := do(); err != nil {
			return port.MachineStatus{}, err
		}
	}
	return m.MachineStatus, nil
}

// live counts the machines that are not gone.
func (r *runner) live() (n int) {
	for _, m := range r.launched {
		if m.Phase != port.MachineGone || m.Reuse.ID != "" {
			n++
		}
	}
	return n
}

// Destroy implements port.Runner.
func (r *runner) Destroy(ctx context.Context, at port.Machine) error {
	r.call(ctx)
	m := r.find(at)
	if m != nil {
		r.checkEnding(ctx, m)
	}
	if m != nil && !r.indestructible {
		m.Reuse = platform.WarmRef{}
	}
	if m != nil && !r.indestructible && m.Phase != port.MachineGone {
		started := m.Phase == port.MachineRunning || !m.stuck && m.Warm.ID == "" || m.late
		if m.Phase = port.MachineGone; started {
			m.Exit, m.Started = &port.Exit{Code: 137, Signal: 9, Requested: true}, true
		}
	}
	return nil
}

// checkEnding fails the test if a kept machine is destroyed before its record is ending: a
// sweep might recycle it.
func (r *runner) checkEnding(ctx context.Context, m *machine) {
	if m.Reuse.ID == "" {
		return
	}
	records, err := r.h.store.Store.WarmMachines(ctx, platform.PoolRef{Tenant: m.Reuse.Tenant, ID: m.Reuse.Pool})
	r.h.ok(err)
	for _, w := range records {
		if w.ID == m.Reuse.ID && w.Phase != platform.WarmEnding {
			r.h.Errorf("got a call that destroys machine %s while its record is %s, want %s", m.ID, w.Phase, platform.WarmEnding)
		}
	}
}

// WarmMachines implements port.Store.
func (s *store) WarmMachines(ctx context.Context, ref platform.PoolRef) ([]platform.WarmMachine, error) {
	have, err := s.Store.WarmMachines(ctx, ref)
	if do := s.afterWarm; do != nil {
		s.afterWarm = nil
		do()
	}
	return have, err
}
