package simulation

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// outageMost is how long an outage of ours takes at most: longer than a heartbeat
// limit, and shorter than half of a token's life.
const outageMost = 4 * time.Minute

// planOutages draws when something of ours is away for long.
func (w *world) planOutages() {
	for w.chance(w.plan.outages * 0.7) {
		kind, length := w.random.IntN(3), w.upTo(outageMost)
		w.time.after(w.upTo(10*time.Minute), func() {
			switch kind {
			case 0:
				w.note("for %s no call comes through", length)
				w.cutUntil = w.time.now.Add(length)
				w.time.after(length, func() { w.up(length) })
			case 1:
				w.note("the process is dead for %s", length)
				w.process.dead, w.deadUntil = true, w.time.now.Add(length)
				w.time.after(length, func() { w.up(length) })
			default:
				w.note("everything stands still for %s", length)
				w.time.now = w.time.now.Add(length)
				w.up(length)
			}
		})
	}
}

// noticed is how long an outage takes that sweeps cannot miss.
const noticed = 3 * sweepEvery

// up notes the end of an outage.
func (w *world) up(after time.Duration) {
	if w.upSince = w.time.now; after > noticed {
		w.heardSince = w.time.now
	}
}

// cutOff says whether no call comes through.
func (w *world) cutOff() bool { return w.cutUntil.After(w.time.now) }

// probe is a call of this Sortie at its public address.
func (w *world) probe(context.Context) error {
	if w.cutOff() || w.chance(w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "it was not reached")
	}
	return nil
}
