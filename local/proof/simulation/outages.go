package simulation

import (
	"time"
)

// outage is a kind of long failure.
type outage int

// The kinds of outages. During throttling the runner refuses to create machines.
const (
	networkOutage outage = iota // workers and clients cannot reach the API
	processOutage
	storeOutage
	runnerOutage
	throttling
	bucketOutage
	executionsOutage
	sweepOutage
	suspension // the host stops, and its clock continues
	clusterOutage
	engineOutage
	outageKinds
)

// drawOutage draws the length of an outage: minutes, or hours.
func (w *base) drawOutage() time.Duration {
	return w.between(10*time.Second, w.longestOutage())
}

// longestOutage limits the length of one outage.
func (w *base) longestOutage() time.Duration { return min(4*w.longest, 6*time.Hour) }

// outageEvents returns the minimum history limit with which an execution survives an outage.
// During it two Tasks are retried, at most once every 20 s, and each retry adds 3 events. Three
// quarters of the history remain after the hand-over.
func (w *base) outageEvents() int { return int(w.longestOutage()/(20*time.Second)) * 2 * 3 * 4 / 3 }

// planOutages draws and schedules the outages. platforms is the number of those of the API
// server of a cluster and of the engine.
func (w *base) planOutages(platforms int) {
	for range platforms {
		kind, length := clusterOutage+outage(w.random.IntN(2)), w.between(10*time.Second, 10*time.Minute)
		w.outageTime += length
		w.time.push(w.upTo(2*w.longest), false, func() { w.beginOutage(kind, length) })
	}
	for range w.plan.outages {
		kind, length := outage(w.random.IntN(int(suspension)+1)), w.drawOutage()
		w.outageTime += length
		w.time.push(w.upTo(2*w.longest), false, func() { w.beginOutage(kind, length) })
	}
}

func (w *base) beginOutage(kind outage, length time.Duration) {
	if w.isHealed() {
		return
	}
	w.note("outage %d begins and takes %s", kind, length)
	if until := w.time.now.Add(length); until.After(w.outages[kind]) {
		w.outages[kind] = until
	}
	switch kind {
	case processOutage:
		if w.home.survivesCrash() {
			w.outages[networkOutage] = w.outages[kind]
			w.outages[executionsOutage] = w.outages[kind]
			break
		}
		w.crash()
	case engineOutage:
		if w.chance(0.5) {
			w.watch.EngineOutage()
		}
	case suspension:
		w.time.now = w.time.now.Add(length)
		w.outageEnded(kind)
		return
	}
	w.time.push(length, false, func() { w.outageEnded(kind) })
}

// outageEnded records the end of an outage.
func (w *base) outageEnded(kind outage) {
	w.upSince = w.time.now
	deaf := kind == networkOutage || kind == processOutage || kind == storeOutage || kind == suspension
	if deaf {
		w.noticedUpSince = w.time.now
	}
}

// down reports whether an outage of the kind is in progress.
func (w *base) down(kind outage) bool { return w.outages[kind].After(w.time.now) }

// anyDown reports whether any outage is in progress.
func (w *base) anyDown() bool {
	for kind := range outageKinds {
		if w.down(kind) {
			return true
		}
	}
	return false
}
