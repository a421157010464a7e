package run

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/retry"
)

// The times of replicas.
const (
	// replicaSteady is how long a run must serve so that its end is no failure of the next
	// start: then the next one follows at once.
	replicaSteady = time.Minute
	// replicaDrain is how long a replica is known as draining before its tasks are counted: a
	// dispatcher that has read the set earlier has committed its task by then.
	replicaDrain = 5 * time.Second
)

// replicaBackoff is the time between runs that end soon.
var replicaBackoff = retry.Backoff{First: time.Second, Most: 5 * time.Minute, Multiplier: 2}

// ReplicaFacts is what is known of a replica beside its record.
type ReplicaFacts struct {
	// Run is the record of its run; nil without one.
	Run *Run
	// Tasks is the number of tasks that the replica has.
	Tasks int
}

// ReplicaPlan is how the replicas of a pool change.
type ReplicaPlan struct {
	// Set is the record to store before anything is done.
	Set ReplicaSet
	// Start are the replicas whose run is to be created under its key, Locate those whose
	// address is to be found, End those whose run is to be cancelled.
	Start, Locate, End []Replica
}

// PlanReplicas compares the replicas of a pool with its settings and with their runs. p has
// Version 0 if the pool was deleted. A run is created only after the one before it has
// ended. Replicas whose settings are outdated are replaced one after the other, and one with
// tasks is not ended; those that a deleted pool had are ended at once.
func PlanReplicas(p Pool, set ReplicaSet, facts map[string]ReplicaFacts, now time.Time) ReplicaPlan {
	now = now.UTC().Round(0)
	var want *EngineMachines
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
	// One that is about to start or to end is enough: the others serve meanwhile.
	changing := false
	for _, r := range have {
		changing = changing || wanted[r.ID] && r.Phase != ReplicaServing
	}
	for _, r := range have {
		switch {
		case wanted[r.ID] && r.current(p):
			if r.Phase == ReplicaDraining {
				r = r.to(ReplicaServing, now).located(facts[r.ID], now)
			}
		case wanted[r.ID]:
			switch r.Phase {
			case ReplicaServing:
				if !changing {
					r, changing = r.to(ReplicaDraining, now), true
				}
			case ReplicaStarting:
				if r.Run != "" {
					r = r.to(ReplicaDraining, now)
				}
			}
		default:
			if r = r.unwanted(now); r.ID == "" {
				continue
			}
		}
		plan.add(r.drained(p, facts[r.ID].Tasks, now).due(p, set, wanted[r.ID], now), facts[r.ID])
	}
	return plan
}

func countOf(m *EngineMachines) int {
	if m == nil {
		return 0
	}
	return m.Count
}

// add adds a replica to the plan, with what is to be done for it.
func (plan *ReplicaPlan) add(r Replica, f ReplicaFacts) {
	plan.Set.Replicas = append(plan.Set.Replicas, r)
	switch {
	case r.Phase == ReplicaStarting && r.Run == "":
		plan.Start = append(plan.Start, r)
	case r.Phase == ReplicaStarting && f.Run != nil && f.Run.State == Running:
		plan.Locate = append(plan.Locate, r)
	case r.Phase == ReplicaEnding && r.Run != "":
		plan.End = append(plan.End, r)
	}
}

// to returns the replica in another state.
func (r Replica) to(s ReplicaState, now time.Time) Replica {
	if r.Phase != s {
		r.Phase, r.Since = s, now
	}
	return r
}

// current reports whether the replica has the settings of the pool. One without a run gets
// them.
func (r Replica) current(p Pool) bool {
	m := p.Engine.Machines
	return r.Phase == ReplicaWaiting ||
		r.Job == m.Job && r.AskedPort == m.Port && r.Model == p.Engine.Model && r.Loads == p.Engine.Loads
}

// observed returns the replica as its run shows it.
func (r Replica) observed(f ReplicaFacts, now time.Time) Replica {
	switch {
	case r.Run == "" && r.Phase == ReplicaEnding && now.Sub(r.Since) >= longestSweep:
		return Replica{ID: r.ID, Number: r.Number}.to(ReplicaWaiting, now) // no sweep creates its run any more
	case r.Phase == ReplicaWaiting, r.Run == "":
		return r
	case f.Run == nil || f.Run.State.Terminal():
		return r.over(f.Run, now)
	case r.Phase == ReplicaEnding:
		return r
	case f.Run.Cancel != nil: // by an operator
		return r.to(ReplicaEnding, now)
	case r.Phase == ReplicaDraining:
		return r
	}
	return r.located(f, now)
}

// located returns a replica that is to serve as serving if it has the address of its run's
// attempt, and as starting otherwise.
func (r Replica) located(f ReplicaFacts, now time.Time) Replica {
	if f.Run == nil || f.Run.State != Running || f.Run.Attempt.Number != r.Attempt {
		r.URL, r.Attempt = "", 0
	}
	if r.URL == "" {
		return r.to(ReplicaStarting, now)
	}
	return r.to(ReplicaServing, now)
}

// over returns the replica after its run. The next run follows at once, unless this one has
// ended soon without a request.
func (r Replica) over(ended *Run, now time.Time) Replica {
	next := Replica{ID: r.ID, Number: r.Number, Failures: r.Failures, Fault: r.Fault, LastRun: r.LastRun}
	next = next.to(ReplicaWaiting, now)
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

// failed delays the next run of the replica.
func (r Replica) failed(why *fault.Fault, now time.Time) Replica {
	r.Failures++
	r.Fault, r.RetryAt = why, now.Add(replicaBackoff.Delay(r.Failures-1))
	return r
}

// Refused returns the replica after the creation of its run was refused.
func (r Replica) Refused(why *fault.Fault, now time.Time) Replica {
	next := Replica{ID: r.ID, Number: r.Number, Failures: r.Failures, LastRun: r.LastRun}
	return next.to(ReplicaWaiting, now).failed(why, now)
}

// Created returns the replica with its run.
func (r Replica) Created(of Run) Replica {
	r.Run, r.TaskID = of.ID, of.TaskID
	return r
}

// Located returns the replica with the address of an attempt of its run.
func (r Replica) Located(attempt int, url string, now time.Time) Replica {
	r.Attempt, r.URL = attempt, url
	if r.LastRun == "" { // it was refused, or had no address
		r.Fault = nil
	}
	return r.to(ReplicaServing, now)
}

// unwanted returns a replica that the pool has too many; the zero value if nothing is left
// of it. A run that another sweep may be about to create is awaited.
func (r Replica) unwanted(now time.Time) Replica {
	switch {
	case r.Phase == ReplicaWaiting:
		return Replica{}
	case r.Run == "":
		return r.to(ReplicaEnding, now)
	case r.Phase == ReplicaEnding:
		return r
	}
	return r.to(ReplicaDraining, now)
}

// drained ends a draining replica without tasks. The pool p may be deleted.
func (r Replica) drained(p Pool, tasks int, now time.Time) Replica {
	if r.Phase == ReplicaDraining && (p.Version == 0 || tasks == 0 && now.Sub(r.Since) >= replicaDrain) {
		return r.to(ReplicaEnding, now)
	}
	return r
}

// due gives a waiting replica the settings of its next run, once that may be created.
func (r Replica) due(p Pool, set ReplicaSet, wanted bool, now time.Time) Replica {
	if !wanted || r.Phase != ReplicaWaiting || now.Before(r.RetryAt) {
		return r
	}
	m := p.Engine.Machines
	r.Number++
	r.Job, r.Model, r.Loads, r.AskedPort, r.Port = m.Job, p.Engine.Model, p.Engine.Loads, m.Port, 0
	r.Key = fmt.Sprintf("replica:%s:%x:%s:%d", set.Pool, set.CreatedAt.UnixNano(), r.ID, r.Number)
	r.RetryAt = time.Time{}
	return r.to(ReplicaStarting, now)
}
