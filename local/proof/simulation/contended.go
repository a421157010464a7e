package simulation

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// contention is the kind of slot that most runs of a contended world compete for.
type contention int

const (
	forPool contention = iota
	forJobs
	forKeys
)

func (w *world) contention() contention { return contention(w.Seed / 10 % 3) }

// drawContention replaces the settings that would keep runs apart.
func (w *world) drawContention() {
	w.Config.MaxMachines, w.Config.Policy.QueueTimeout = 1+w.Random.IntN(2), w.Longest
	w.Config.Policy.CancelGrace = w.Between(5*time.Second, 30*time.Second)
	w.Config.Policy.Retry.MaxAttempts, w.Config.Policy.Retry.InitialDelay = 1+w.Random.IntN(2), time.Second
	if w.contention() == forJobs {
		w.Config.MaxMachines += 2
		w.Plan.WorkerContract, w.Plan.IgnoreSignals = 1, 0.7
	}
}

// drawContended draws the definition of a job that fires often.
func (w *world) drawContended(d map[string]any) {
	times := nominal{every: w.Between(4*time.Second, 20*time.Second)}
	d["schedule"] = "@every " + times.every.String()
	w.schedules[scheduleKey{"@every " + times.every.String(), ""}] = times
	d["priority"] = []spec.Priority{spec.PriorityInteractive, spec.PriorityNormal, spec.PriorityNormal, spec.PriorityBatch}[w.Random.IntN(4)]
	constraints := map[string]any{"maxAllowedRunTime": w.Between(20*time.Second, time.Minute).String()}
	d["constraints"] = constraints
	keyed, limited := 0.5, 0.4
	switch w.contention() {
	case forJobs:
		keyed, limited = 0, 1
	case forKeys:
		keyed, limited = 1, 0
	}
	if w.Chance(keyed) {
		w.drawKey(d)
	}
	if w.Chance(limited) {
		constraints["maxConcurrentRuns"] = 1 + w.Random.IntN(2)
		kind := []spec.ActionType{spec.ActionKillOld, spec.ActionKillOld, spec.ActionWait}[w.Random.IntN(3)]
		d["actions"] = map[string]any{"onConstraintViolation": map[string]any{"type": kind}}
	}
}

// ownContended changes and runs a job until its schedule ends.
func (w *world) ownContended(id string, until time.Time) {
	for range w.Random.IntN(8) {
		pause := w.UpTo(w.horizon / 3)
		if !w.Time.Now.Add(pause).Before(until) {
			break
		}
		w.Time.Sleep(pause)
		if w.Chance(0.4) {
			w.putJob(id)
		} else {
			w.runJob(id)
		}
	}
}

// operateContended changes the limits of the pool until the schedules end.
func (w *world) operateContended() {
	for range 2 + w.Random.IntN(6) {
		w.Time.Sleep(w.UpTo(w.horizon / 2))
		w.Resize()
	}
}
