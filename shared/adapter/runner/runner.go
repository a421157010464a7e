// Package runner implements port.Runner on several runners. Each pool names the runner that
// creates its machines. Each machine names the runner that created it.
//
// A machine of a runner that is not configured is unreachable, not gone: its calls return
// an Unavailable fault.
package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Runner dispatches to the configured runners. It is safe for concurrent use if they are.
type Runner struct {
	standard string
	runners  map[string]port.Runner
}

var (
	_ port.Runner       = (*Runner)(nil)
	_ port.StartLimits  = (*Runner)(nil)
	_ port.MachineLogs  = (*Runner)(nil)
	_ port.RunnerLists  = (*Runner)(nil)
	_ port.WarmMachines = (*Runner)(nil)
)

// New returns a Runner. The keys of runners are the names in placements and in machines. A
// runner may have several names. standard is the runner of launches and of recorded machines
// that name no runner. Without any runner, standard is empty and no machine can be launched.
func New(standard string, runners map[string]port.Runner) (*Runner, error) {
	if runners[standard] == nil && len(runners) > 0 {
		return nil, fmt.Errorf("cannot use the default runner %q: want one of %s", standard, names(runners))
	}
	return &Runner{standard, maps.Clone(runners)}, nil
}

// names returns the configured names, separated by commas.
func names(runners map[string]port.Runner) string {
	return strings.Join(slices.Sorted(maps.Keys(runners)), ", ")
}

// named returns a runner, or nil if it is not configured.
func (r *Runner) named(name string) port.Runner {
	if name == "" {
		name = r.standard
	}
	return r.runners[name]
}

// of returns the runner of a machine. Fault: Unavailable.
func (r *Runner) of(m port.Machine) (port.Runner, error) {
	if one := r.named(m.Runner); one != nil {
		return one, nil
	}
	return nil, fault.New(fault.Unavailable, "cannot reach the runner %q of the machine: it is not configured, there is %s", m.Runner, names(r.runners))
}

// Launch implements port.Runner.
func (r *Runner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	one := r.named(spec.Runner)
	if len(r.runners) == 0 {
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "this deployment has no machines; its operator gives it Fly apps or a Kubernetes cluster")
	}
	if one == nil {
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the runner %q of the pool is not configured, want %s", spec.Runner, names(r.runners))
	}
	return one.Launch(ctx, spec)
}

// Inspect implements port.Runner.
func (r *Runner) Inspect(ctx context.Context, m port.Machine) (port.MachineStatus, error) {
	one, err := r.of(m)
	if err != nil {
		return port.MachineStatus{}, err
	}
	return one.Inspect(ctx, m)
}

// Wait implements port.Runner.
func (r *Runner) Wait(ctx context.Context, m port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	one, err := r.of(m)
	if err != nil {
		return port.MachineStatus{}, err
	}
	return one.Wait(ctx, m, phase, limit)
}

// List implements port.Runner. It reads all runners concurrently, so that a slow one does not
// use up the time of the others.
func (r *Runner) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	stopped := false
	take := func(m port.MachineStatus) bool {
		mu.Lock()
		defer mu.Unlock()
		if !stopped && !each(m) {
			stopped = true
			stop()
		}
		return !stopped
	}
	parts := r.parts()
	failed := make([]error, len(parts))
	var lists sync.WaitGroup
	for i, name := range parts {
		lists.Go(func() {
			if err := r.runners[name].List(reading, take); err != nil {
				failed[i] = fmt.Errorf("runner %s: %w", name, err)
			}
		})
	}
	lists.Wait()
	if stopped {
		return nil
	}
	return errors.Join(failed...)
}

// ListOf implements port.RunnerLists. Fault: Unavailable for a runner that is not
// configured.
func (r *Runner) ListOf(ctx context.Context, runner string, each func(port.MachineStatus) bool) error {
	one, err := r.of(port.Machine{Runner: runner})
	if err != nil {
		return err
	}
	return one.List(ctx, each)
}

// parts returns one name of each runner, sorted.
func (r *Runner) parts() []string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r.runners)) {
		if !slices.ContainsFunc(parts, func(other string) bool { return r.runners[other] == r.runners[name] }) {
			parts = append(parts, name)
		}
	}
	return parts
}

// Stop implements port.Runner.
func (r *Runner) Stop(ctx context.Context, m port.Machine, grace time.Duration) error {
	one, err := r.of(m)
	if err != nil {
		return err
	}
	return one.Stop(ctx, m, grace)
}

// Destroy implements port.Runner.
func (r *Runner) Destroy(ctx context.Context, m port.Machine) error {
	one, err := r.of(m)
	if err != nil {
		return err
	}
	return one.Destroy(ctx, m)
}

// StartLimits implements port.StartLimits. It returns nil for a runner without the capability.
func (r *Runner) StartLimits(where platform.Placement) []fleet.StartPace {
	if limits, ok := r.named(where.Runner).(port.StartLimits); ok {
		return limits.StartLimits(where)
	}
	return nil
}

// AppOf implements port.StartLimits.
func (r *Runner) AppOf(where platform.Placement, machineName string) string {
	if limits, ok := r.named(where.Runner).(port.StartLimits); ok {
		return limits.AppOf(where, machineName)
	}
	return ""
}

// Logs implements port.MachineLogs. It returns ErrNotFound if the runner has no logs.
func (r *Runner) Logs(ctx context.Context, m port.Machine) ([]byte, error) {
	one, err := r.of(m)
	if err != nil {
		return nil, err
	}
	logs, ok := one.(port.MachineLogs)
	if !ok {
		return nil, fmt.Errorf("the runner %s keeps no logs: %w", m.Runner, port.ErrNotFound)
	}
	return logs.Logs(ctx, m)
}

// Prepare implements port.WarmMachines. Fault: LaunchRefused for a runner without warm
// machines.
func (r *Runner) Prepare(ctx context.Context, spec port.WarmSpec) (port.MachineStatus, error) {
	if one, ok := r.named(spec.Runner).(port.WarmMachines); ok {
		return one.Prepare(ctx, spec)
	}
	return port.MachineStatus{}, noWarm(spec.Runner)
}

// StartWarm implements port.WarmMachines. It returns the same fault as Prepare.
func (r *Runner) StartWarm(ctx context.Context, m port.Machine, spec port.LaunchSpec) (port.MachineStatus, error) {
	if one, ok := r.named(m.Runner).(port.WarmMachines); ok {
		return one.StartWarm(ctx, m, spec)
	}
	return port.MachineStatus{}, noWarm(m.Runner)
}

// Recycle implements port.WarmMachines. It returns the same fault as Prepare.
func (r *Runner) Recycle(ctx context.Context, m port.Machine, spec port.WarmSpec) (port.MachineStatus, error) {
	if one, ok := r.named(m.Runner).(port.WarmMachines); ok {
		return one.Recycle(ctx, m, spec)
	}
	return port.MachineStatus{}, noWarm(m.Runner)
}

func noWarm(runner string) error {
	return fault.New(fault.LaunchRefused, "the runner %q has no warm machines", runner)
}
