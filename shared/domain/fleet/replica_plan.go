package fleet

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// The times of replicas.
const (
	// replicaSteady is how long a run must serve before its end does not count as a failed
	// start. The next run then follows at once.
	replicaSteady = time.Minute
	// replicaDrain is how long a replica is draining before its tasks are counted. A dispatcher
	// that has read the older set has committed its task by then.
	replicaDrain = 5 * time.Second
)

// replicaBackoff is the delay between runs that end early.
var replicaBackoff = retry.Backoff{First: time.Second, Most: 5 * time.Minute, Multiplier: 2}

// ReplicaFacts are the facts about a replica that its record does not have.
type ReplicaFacts struct {
	// Run is the record of its run; nil without one.
	Run *run.Run
	// Tasks is the number of tasks that the replica is working on.
	Tasks int
}

// ReplicaPlan contains the changes to the replicas of a pool.
type ReplicaPlan struct {
	// Set is the record. It is stored before the plan is carried out.
	Set ReplicaSet
	// Start are the replicas whose run is created, under Replica.Key. Locate are those whose
	// address is looked up. End are those whose run is cancelled.
	Start, Locate, End []Replica
}

// PlanReplicas compares the replicas of a pool with its settings and their runs. p has Version
// 0 if the pool was deleted. The run of a replica is created only after the previous one has
// ended. Serving replicas with outdated settings are replaced one at a time, and not before
// their tasks have ended. The replicas of a deleted pool are ended at once.
func PlanReplicas(p platform.Pool, set ReplicaSet, facts map[string]ReplicaFacts, now time.Time) ReplicaPlan {
	now = now.UTC().Round(0)
	var want *platform.EngineMachines
	if p.Version > 0 && p.Engine != nil {
		want = p.Engine.Machines
	}
	plan := ReplicaPlan{Set: set}
	plan.Set.Replicas = nil
	known := map[string]bool{}
	var have []Replica
	for _, r := range set.Replicas {
		known[r.ID] = true
		have = append(have, r.observed(facts[r.ID], now))
	}
	wanted := map[string]bool{}
	for i := range countOf(want) {
		id := "r" + strconv.Itoa(i+1)
		if wanted[id] = true; !known[id] {
			have = append(have, Replica{ID: id, Phase: ReplicaWaiting, Since: now})
		}
	}
	// Only one replica changes at a time: the others continue to serve.
	changing := false
	for _, r := range have {
		changing = changing || wanted[r.ID] && r.Phase != ReplicaServing
	}
	for _, r := range have {
		switch {
		case wanted[r.ID] && r.current(p):
			if r.Phase == ReplicaDraining {
				r = r.inState(ReplicaServing, now).located(facts[r.ID], now)
			}
		case wanted[r.ID]:
			switch r.Phase {
			case ReplicaServing:
				if !changing {
					r, changing = r.inState(ReplicaDraining, now), true
				}
			case ReplicaStarting:
				if r.Run != "" {
					r = r.inState(ReplicaDraining, now)
				}
			}
		default:
			if r = r.unwanted(now); r.ID == "" {
				continue
			}
		}
		plan.add(r.drained(p, facts[r.ID].Tasks, now).withNextRun(p, set, wanted[r.ID], now), facts[r.ID])
	}
	return plan
}

func countOf(m *platform.EngineMachines) int {
	if m == nil {
		return 0
	}
	return m.Count
}

// add adds a replica to the plan, with the action that it needs.
func (plan *ReplicaPlan) add(r Replica, f ReplicaFacts) {
	plan.Set.Replicas = append(plan.Set.Replicas, r)
	switch {
	case r.Phase == ReplicaStarting && r.Run == "":
		plan.Start = append(plan.Start, r)
	case r.Phase == ReplicaStarting && f.Run != nil && f.Run.State == run.Running:
		plan.Locate = append(plan.Locate, r)
	case r.Phase == ReplicaEnding && r.Run != "":
		plan.End = append(plan.End, r)
	}
}

// inState returns the replica in another state.
func (r Replica) inState(s ReplicaState, now time.Time) Replica {
	if r.Phase != s {
		r.Phase, r.Since = s, now
	}
	return r
}

// current reports whether the replica has the settings of the pool. A replica without a run
// will get them.
func (r Replica) current(p platform.Pool) bool {
	m := p.Engine.Machines
	return r.Phase == ReplicaWaiting ||
		r.Job == m.Job && r.AskedPort == m.Port && r.Model == p.Engine.Model && r.Loads == p.Engine.Loads
}

// observed returns the replica as updated by the state of its run.
func (r Replica) observed(f ReplicaFacts, now time.Time) Replica {
	switch {
	case r.Run == "" && r.Phase == ReplicaEnding && now.Sub(r.Since) >= platform.LongestSweep:
		return Replica{ID: r.ID, Number: r.Number}.inState(ReplicaWaiting, now) // no sweep can create its run any more
	case r.Phase == ReplicaWaiting, r.Run == "":
		return r
	case f.Run == nil || f.Run.State.Terminal():
		return r.afterRun(f.Run, now)
	case r.Phase == ReplicaEnding:
		return r
	case f.Run.Cancel != nil: // requested by an operator
		return r.inState(ReplicaEnding, now)
	case r.Phase == ReplicaDraining:
		return r
	}
	return r.located(f, now)
}

// located returns the replica as serving if it has the address of its run's current attempt,
// and as starting otherwise.
func (r Replica) located(f ReplicaFacts, now time.Time) Replica {
	if f.Run == nil || f.Run.State != run.Running || f.Run.Attempt.Number != r.Attempt {
		r.URL, r.Attempt = "", 0
	}
	if r.URL == "" {
		return r.inState(ReplicaStarting, now)
	}
	return r.inState(ReplicaServing, now)
}

// afterRun returns the replica after the end of its run. The next run follows at once, unless
// this run ended early and no end was requested.
func (r Replica) afterRun(ended *run.Run, now time.Time) Replica {
	next := Replica{ID: r.ID, Number: r.Number, Failures: r.Failures, Fault: r.Fault, LastRun: r.LastRun}
	next = next.inState(ReplicaWaiting, now)
	if r.Phase == ReplicaEnding || r.Phase == ReplicaDraining {
		next.Failures, next.Fault, next.LastRun = 0, nil, ""
		return next
	}
	next.Failures, next.LastRun = 0, r.Run
	next.Fault = fault.New(fault.WorkerLost, "the record of the run is gone")
	if ended == nil {
		return next
	}
	if next.Fault = ended.Fault; next.Fault == nil {
		next.Fault = fault.New(fault.ProgramExit, "the run ended as %s", ended.State)
	}
	if began := ended.Attempt.StartedAt; began.IsZero() || ended.EndedAt.Sub(began) < replicaSteady {
		next.Failures = r.Failures
		return next.failed(next.Fault, now)
	}
	return next
}

// failed counts a failure and delays the next run of the replica.
func (r Replica) failed(why *fault.Fault, now time.Time) Replica {
	r.Failures++
	r.Fault, r.RetryAt = why, now.Add(replicaBackoff.Delay(r.Failures-1))
	return r
}

// Refused returns the replica after the creation of its run was refused.
func (r Replica) Refused(why *fault.Fault, now time.Time) Replica {
	next := Replica{ID: r.ID, Number: r.Number, Failures: r.Failures, LastRun: r.LastRun}
	return next.inState(ReplicaWaiting, now).failed(why, now)
}

// Created returns the replica with its created run.
func (r Replica) Created(of run.Run) Replica {
	r.Run, r.TaskID = of.ID, of.TaskID
	return r
}

// Located returns the replica as serving at the address of an attempt of its run.
func (r Replica) Located(attempt int, url string, now time.Time) Replica {
	r.Attempt, r.URL = attempt, url
	if r.LastRun == "" { // the creation was refused, or the machine had no address
		r.Fault = nil
	}
	return r.inState(ReplicaServing, now)
}

// unwanted returns a replica that is beyond the count of the pool, as one that is being ended.
// It returns the zero value if nothing is left of the replica. A run that another sweep may be
// creating is awaited.
func (r Replica) unwanted(now time.Time) Replica {
	switch {
	case r.Phase == ReplicaWaiting:
		return Replica{}
	case r.Run == "":
		return r.inState(ReplicaEnding, now)
	case r.Phase == ReplicaEnding:
		return r
	}
	return r.inState(ReplicaDraining, now)
}

// drained ends a draining replica once it has no tasks, or at once if the pool p was deleted.
func (r Replica) drained(p platform.Pool, tasks int, now time.Time) Replica {
	if r.Phase == ReplicaDraining && (p.Version == 0 || tasks == 0 && now.Sub(r.Since) >= replicaDrain) {
		return r.inState(ReplicaEnding, now)
	}
	return r
}

// withNextRun gives a waiting replica the settings of its next run once RetryAt has passed.
func (r Replica) withNextRun(p platform.Pool, set ReplicaSet, wanted bool, now time.Time) Replica {
	if !wanted || r.Phase != ReplicaWaiting || now.Before(r.RetryAt) {
		return r
	}
	m := p.Engine.Machines
	r.Number++
	r.Job, r.Model, r.Loads, r.AskedPort, r.Port = m.Job, p.Engine.Model, p.Engine.Loads, m.Port, 0
	r.Key = fmt.Sprintf("replica:%s:%x:%s:%d", set.Pool, set.CreatedAt.UnixNano(), r.ID, r.Number)
	r.RetryAt = time.Time{}
	return r.inState(ReplicaStarting, now)
}
