package capacity

import "github.com/sortie-dev/sortie/shared/domain/platform"

// Use counts the slots of a pool that runs hold or queue for.
type Use struct{ Held, Queued int }

// PoolUse returns the use of each pool according to the runs. A slot without a limit has no
// lease.
func (w *Capacity) PoolUse() map[string]Use {
	pools := map[string]Use{}
	for _, r := range w.Records.Ordered {
		for _, s := range []platform.Slot{r.Slot, r.JobSlot, r.KeySlot} {
			of := pools[s.Pool]
			switch {
			case r.State.Terminal():
				continue
			case s.State == platform.SlotQueued:
				of.Queued++
			case s.State == platform.SlotHeld && s.Limit > 0:
				of.Held++
			default:
				continue
			}
			pools[s.Pool] = of
		}
	}
	return pools
}
