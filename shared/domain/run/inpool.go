package run

import "github.com/sortie-dev/sortie/shared/domain/platform"

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
