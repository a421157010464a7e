package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Serves identifies the replica that a run provides.
type Serves struct {
	Pool string `json:"pool"`
	// Replica is the id of the replica. The runs that replace each other share it.
	Replica string `json:"replica"`
}

// HoldsSlotOf reports whether the run holds a slot of the pool, even if the pool has no limit.
func (r Run) HoldsSlotOf(p platform.Pool) bool {
	return r.Slot.Pool == p.ID && r.Slot.State == platform.SlotHeld && !r.State.Terminal()
}

// Claims reports whether the run's current attempt has claimed the machine.
func (r Run) Claims(w platform.WarmMachine) bool {
	return w.Phase == platform.WarmClaimed && !r.State.Terminal() && r.Attempt.Number == w.Attempt && r.Attempt.Warm != nil && r.Attempt.Warm.ID == w.ID
}

// CheckKind returns a fault, with the field pool, if the pool p does not run this kind of work. A
// pool of an engine runs only inference tasks; other pools run none.
func CheckKind(p platform.Pool, kind string) *fault.Fault {
	var f *fault.Fault
	switch {
	case kind == spec.KindInference && p.Engine == nil:
		f = fault.New(fault.Unprocessable, "the pool %s has no engine, want a pool of an engine", p.ID)
	case kind != spec.KindInference && p.Engine != nil:
		f = fault.New(fault.Unprocessable, "the pool %s is of the engine %s and runs inference tasks only, want a pool of a runner", p.ID, p.Engine.Kind)
	default:
		return nil
	}
	f.Field = "pool"
	return f
}

// DrainPhase is the progress of the drain of a pool.
type DrainPhase string

// The phases, in order.
const (
	// DrainWaiting: no run is granted a slot, and runs with a slot keep it.
	DrainWaiting DrainPhase = "waiting"
	// DrainEnding: the deadline has passed, and workers are asked to end.
	DrainEnding DrainPhase = "ending"
	// DrainStopping: all attempts have ended, and machines are being stopped.
	DrainStopping DrainPhase = "stopping"
	// DrainDone: nothing remains.
	DrainDone DrainPhase = "drained"
)

// DrainPhaseOf returns the phase of the drain; empty if the pool does not drain. remaining are
// the runs with a slot of the pool, warm is the number of its warm machines.
func DrainPhaseOf(p platform.Pool, remaining []Run, warm int, now time.Time) DrainPhase {
	if !p.Draining {
		return ""
	}
	phase := DrainDone
	if len(remaining)+warm > 0 {
		phase = DrainStopping
	}
	for _, r := range remaining {
		if r.State != Terminating {
			phase = DrainWaiting
		}
	}
	if phase == DrainWaiting && !p.DrainBy.IsZero() && !now.Before(p.DrainBy) {
		phase = DrainEnding
	}
	return phase
}
