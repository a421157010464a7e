package fly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// Fly waits for one second to a minute, in whole seconds. It accepts one wait a second per
// machine.
const (
	waitLeast = time.Second
	waitMost  = time.Minute
	waitPause = time.Second
	// waitSlack is how much longer than the wait its response may take. The client has no
	// timeout.
	waitSlack = 10 * time.Second
)

// Wait implements port.Runner. It also waits for a machine that Fly does not show, because new
// machines appear late. It returns ErrNotFound if the machine never appears.
func (r *Runner) Wait(ctx context.Context, m port.Machine, until port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	const what = "wait for the machine"
	if !located(m) {
		return port.MachineStatus{}, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	states := []string{"destroyed"}
	if until == port.MachineGone && m.Version != "" { // the machine may be kept after its program has ended
		states = []string{"stopped", "destroyed"}
	}
	if until == port.MachineRunning {
		states = []string{"started", "stopped", "destroyed"}
	}
	over := r.cfg.Clock.Now().Add(min(max(limit, waitLeast), waitMost))
	for {
		left := over.Sub(r.cfg.Clock.Now())
		if left >= waitLeast {
			err := r.waitOnce(ctx, m, states, left)
			switch classify(err) {
			case fine, notYet, noMachine, throttled:
			default:
				return port.MachineStatus{}, failure(ctx, err, what)
			}
		}
		now, err := r.Inspect(ctx, m)
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return port.MachineStatus{}, err
		}
		left = over.Sub(r.cfg.Clock.Now())
		if left <= 0 || (err == nil && reached(now.Phase, until)) {
			return now, err
		}
		if !r.sleep(ctx, min(left, waitPause)) {
			return port.MachineStatus{}, failure(ctx, ctx.Err(), what)
		}
	}
}

func (r *Runner) waitOnce(ctx context.Context, m port.Machine, states []string, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, left+waitSlack)
	defer cancel()
	return r.client.Wait(ctx, m.App, m.ID, states, left)
}

// reached reports whether a phase is the wanted one or a later one. An unknown
// phase is neither.
func reached(now, wanted port.MachinePhase) bool {
	order := []port.MachinePhase{
		port.MachineUnknown, port.MachineCreating, port.MachineRunning,
		port.MachineEnding, port.MachineGone,
	}
	return slices.Index(order, now) >= slices.Index(order, wanted)
}
