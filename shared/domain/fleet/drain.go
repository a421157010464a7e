package fleet

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

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
func DrainPhaseOf(p platform.Pool, remaining []run.Run, warm int, now time.Time) DrainPhase {
	if !p.Draining {
		return ""
	}
	phase := DrainDone
	if len(remaining)+warm > 0 {
		phase = DrainStopping
	}
	for _, r := range remaining {
		if r.State != run.Terminating {
			phase = DrainWaiting
		}
	}
	if phase == DrainWaiting && !p.DrainBy.IsZero() && !now.Before(p.DrainBy) {
		phase = DrainEnding
	}
	return phase
}
