package container

import (
	"context"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// waitPause is the time between two inspections of a container. The engine's own wait can
// return before the exit code is known, and Podman's can return the exit code of another
// container.
const waitPause = 100 * time.Millisecond

// Wait implements port.Runner.
func (r *Runner) Wait(ctx context.Context, m port.Machine, until port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	over := r.cfg.Clock.Now().Add(min(max(limit, time.Second), time.Minute))
	for {
		now, err := r.Inspect(ctx, m)
		left := over.Sub(r.cfg.Clock.Now())
		if err != nil || reached(now.Phase, until) || left <= 0 {
			return now, err
		}
		if err := clock.Sleep(ctx, r.cfg.Clock, min(left, waitPause)); err != nil {
			return port.MachineStatus{}, failure(ctx, err, "wait for the container")
		}
	}
}

// reached reports whether a phase is the wanted one or a later one. An unknown phase is
// neither.
func reached(now, wanted port.MachinePhase) bool {
	order := []port.MachinePhase{
		port.MachineUnknown, port.MachineCreating, port.MachineRunning,
		port.MachineEnding, port.MachineGone,
	}
	return slices.Index(order, now) >= slices.Index(order, wanted)
}
