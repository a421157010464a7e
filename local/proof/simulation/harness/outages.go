package harness

import (
	"time"
)

// Outage is a kind of long failure.
type Outage int

// The kinds of outages. During throttling the runner refuses to create machines.
const (
	NetworkOutage Outage = iota // workers and clients cannot reach the API
	processOutage
	storeOutage
	RunnerOutage
	Throttling
	bucketOutage
	ExecutionsOutage
	sweepOutage
	suspension // the host stops, and its clock continues
	ClusterOutage
	EngineOutage
	OutageKinds
)

// drawOutage draws the length of an outage: minutes, or hours.
func (w *Base) drawOutage() time.Duration {
	return w.Between(10*time.Second, w.longestOutage())
}

// longestOutage limits the length of one outage.
func (w *Base) longestOutage() time.Duration { return min(4*w.Longest, 6*time.Hour) }

// outageEvents returns the minimum history limit with which an execution survives an outage.
// During it two Tasks are retried, at most once every 20 s, and each retry adds 3 events. Three
// quarters of the history remain after the hand-over.
func (w *Base) outageEvents() int { return int(w.longestOutage()/(20*time.Second)) * 2 * 3 * 4 / 3 }

// PlanOutages draws and schedules the outages. platforms is the number of those of the API
// server of a cluster and of the engine.
func (w *Base) PlanOutages(platforms int) {
	for range platforms {
		kind, length := ClusterOutage+Outage(w.Random.IntN(2)), w.Between(10*time.Second, 10*time.Minute)
		w.OutageTime += length
		w.Time.Push(w.UpTo(2*w.Longest), false, func() { w.beginOutage(kind, length) })
	}
	for range w.Plan.Outages {
		kind, length := Outage(w.Random.IntN(int(suspension)+1)), w.drawOutage()
		w.OutageTime += length
		w.Time.Push(w.UpTo(max(2*w.Longest, w.OutagesFor)), false, func() { w.beginOutage(kind, length) })
	}
}

func (w *Base) beginOutage(kind Outage, length time.Duration) {
	if w.IsHealed() {
		return
	}
	w.Note("outage %d begins and takes %s", kind, length)
	w.Injected["outage"]++
	if until := w.Time.Now.Add(length); until.After(w.Outages[kind]) {
		w.Outages[kind] = until
	}
	switch kind {
	case processOutage:
		if w.Home.SurvivesCrash() {
			w.Outages[NetworkOutage] = w.Outages[kind]
			w.Outages[ExecutionsOutage] = w.Outages[kind]
			break
		}
		w.crash()
	case EngineOutage:
		if w.Chance(0.5) {
			w.Watch.EngineOutage()
		}
	case suspension:
		w.Time.Now = w.Time.Now.Add(length)
		w.outageEnded(kind)
		return
	}
	w.Time.Push(length, false, func() { w.outageEnded(kind) })
}

// outageEnded records the end of an outage.
func (w *Base) outageEnded(kind Outage) {
	w.UpSince = w.Time.Now
	deaf := kind == NetworkOutage || kind == processOutage || kind == storeOutage || kind == suspension
	if deaf {
		w.NoticedUpSince = w.Time.Now
	}
}

// Down reports whether an outage of the kind is in progress.
func (w *Base) Down(kind Outage) bool { return w.Outages[kind].After(w.Time.Now) }

// AnyDown reports whether any outage is in progress.
func (w *Base) AnyDown() bool {
	for kind := range OutageKinds {
		if w.Down(kind) {
			return true
		}
	}
	return false
}
