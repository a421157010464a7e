package simulation

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// maxOutage limits an outage: longer than a heartbeat limit, and shorter than
// half of a token's validity.
const maxOutage = 4 * time.Minute

// planOutages draws the outages of Sortie itself.
func (w *world) planOutages() {
	for w.chance(w.plan.outages * 0.7) {
		kind, length := w.random.IntN(3), w.upTo(maxOutage)
		w.time.after(w.upTo(10*time.Minute), func() {
			switch kind {
			case 0:
				w.note("the network is down for %s", length)
				w.cutUntil = w.time.now.Add(length)
				w.time.after(length, func() { w.outageEnded(length) })
			case 1:
				w.note("the process is down for %s", length)
				w.process.crashed, w.deadUntil = true, w.time.now.Add(length)
				w.time.after(length, func() { w.outageEnded(length) })
			default:
				w.note("the host is suspended for %s", length)
				w.time.now = w.time.now.Add(length)
				w.outageEnded(length)
			}
		})
	}
}

// noticeableOutage is the shortest outage that sweeps cannot miss.
const noticeableOutage = 3 * sweepEvery

// outageEnded notes the end of an outage.
func (w *world) outageEnded(after time.Duration) {
	if w.upSince = w.time.now; after > noticeableOutage {
		w.noticedUpSince = w.time.now
	}
}

// disconnected reports whether the network is down.
func (w *world) disconnected() bool { return w.cutUntil.After(w.time.now) }

// canary sends a canary to the public address.
func (w *world) canary(ctx context.Context, token string) error {
	if w.disconnected() || w.chance(w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "unreachable")
	}
	_, err := w.system.ReceiveCanary(ctx, token)
	return err
}
