package simulation

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// contention is the kind of slot that most runs of a contended world compete for.
type contention int

const (
	forPool contention = iota
	forJobs
	forKeys
)

func (w *world) contention() contention { return contention(w.seed / 10 % 3) }

// drawContention replaces the settings that would keep runs apart.
func (w *world) drawContention() {
	w.config.MaxMachines, w.config.Policy.QueueTimeout = 1+w.random.IntN(2), w.longest
	w.config.Policy.CancelGrace = w.between(5*time.Second, 30*time.Second)
	w.config.Policy.Retry.MaxAttempts, w.config.Policy.Retry.InitialDelay = 1+w.random.IntN(2), time.Second
	if w.contention() == forJobs {
		w.config.MaxMachines += 2
		w.plan.workerContract, w.plan.ignoreSignals = 1, 0.7
	}
}

// drawContended draws the definition of a job that fires often.
func (w *world) drawContended(d map[string]any) {
	times := nominal{every: w.between(4*time.Second, 20*time.Second)}
	d["schedule"] = "@every " + times.every.String()
	w.schedules[scheduleKey{"@every " + times.every.String(), ""}] = times
	d["priority"] = []spec.Priority{spec.PriorityInteractive, spec.PriorityNormal, spec.PriorityNormal, spec.PriorityBatch}[w.random.IntN(4)]
	constraints := map[string]any{"maxAllowedRunTime": w.between(20*time.Second, time.Minute).String()}
	d["constraints"] = constraints
	keyed, limited := 0.5, 0.4
	switch w.contention() {
	case forJobs:
		keyed, limited = 0, 1
	case forKeys:
		keyed, limited = 1, 0
	}
	if w.chance(keyed) {
		w.drawKey(d)
	}
	if w.chance(limited) {
		constraints["maxConcurrentRuns"] = 1 + w.random.IntN(2)
		kind := []run.ActionType{run.ActionKillOld, run.ActionKillOld, run.ActionWait}[w.random.IntN(3)]
		d["actions"] = map[string]any{"onConstraintViolation": map[string]any{"type": kind}}
	}
}

// ownContended changes and runs a job until its schedule ends.
func (w *world) ownContended(id string, until time.Time) {
	for range w.random.IntN(8) {
		pause := w.upTo(w.horizon / 3)
		if !w.time.now.Add(pause).Before(until) {
			break
		}
		w.time.sleep(pause)
		if w.chance(0.4) {
			w.putJob(id)
		} else {
			w.runJob(id)
		}
	}
}

// operateContended changes the limits of the pool until the schedules end.
func (w *world) operateContended() {
	for range 2 + w.random.IntN(6) {
		w.time.sleep(w.upTo(w.horizon / 2))
		w.resize()
	}
}

// longestWork limits the work of most workers.
func (w *world) longestWork() time.Duration {
	if w.contended() || w.admitting() {
		return 25 * time.Second
	}
	return w.longest / 2
}
