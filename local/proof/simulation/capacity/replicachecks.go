package capacity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// owed is an action that a replica awaits from a keeper, and the time since when.
type owed struct {
	what  string
	since time.Time
}

// SetsWritten implements harness.Watch. It checks the replica sets that a call has saved or removed. err is the result of
// the call.
func (w *Capacity) SetsWritten(err error, saved, removed []port.Resource) {
	if w.Fleet == nil {
		return
	}
	for _, p := range w.Fleet.Pools {
		of := func(r port.Resource) bool { return r.Kind == "replicas" && r.ID == p.Id }
		i := slices.IndexFunc(saved, of)
		if p.touched = p.touched || (i >= 0 || slices.ContainsFunc(removed, of)) && (err != nil || i < 0); i < 0 || err != nil {
			continue
		}
		var after fleet.ReplicaSet
		if err := json.Unmarshal(saved[i].Document, &after); err != nil {
			w.Fail("cannot read the replicas of %s: %v", p.Id, err)
		}
		w.checkSet(p, after)
		p.set = after
	}
}

// CheckFleet checks the replicas of all pools after an event.
func (w *Capacity) CheckFleet() {
	if w.Fleet == nil {
		return
	}
	for _, p := range w.Fleet.Pools {
		if p.touched && !w.Process.Crashed {
			p.set, _ = w.storedSet(p)
			p.touched = false
		}
		w.checkOwed(p)
	}
}

// numberOf returns the number in a replica's id, from 1.
func (w *Capacity) numberOf(r fleet.Replica) int {
	n, err := strconv.Atoi(strings.TrimPrefix(r.ID, "r"))
	if err != nil {
		w.Fail("replica %q has no number", r.ID)
	}
	return n
}

// checkSet checks a change of a pool's replica set. It has no more replicas than the permitted
// settings allow, and replicas with old settings are replaced one after another.
func (w *Capacity) checkSet(p *enginePool, after fleet.ReplicaSet) {
	least, most := p.counts(w.Time.Now.Add(-w.lookupSlack()))
	before := map[string]fleet.Replica{}
	for _, r := range p.set.Replicas {
		before[r.ID] = r
	}
	for _, r := range after.Replicas {
		n, was := w.numberOf(r), before[r.ID]
		changes := was.Phase != r.Phase || was.Number != r.Number // a replica left by a deleted pool has not ended yet
		if leaves := r.Phase == fleet.ReplicaDraining || r.Phase == fleet.ReplicaEnding; n > most && !leaves && changes {
			w.Fail("replica %s of %s is %s, want at most %d replicas", r.ID, p.Id, r.Phase, most)
		}
		if was.Number > r.Number {
			w.Fail("replica %s of %s went back from run %d to %d", r.ID, p.Id, was.Number, r.Number)
		}
		if was.Phase != fleet.ReplicaServing || r.Phase != fleet.ReplicaDraining || n > least {
			continue
		}
		if of, ok := w.StoredRun(port.MachineOwner{Tenant: harness.Client.Tenant, RunID: r.Run}); !ok || of.State != run.Running || of.Attempt.Number != r.Attempt {
			continue // an ended run serves nothing
		}
		for _, other := range after.Replicas {
			if other.ID != r.ID && w.numberOf(other) <= least && other.Phase != fleet.ReplicaServing {
				w.Fail("replica %s of %s drains while %s is %s, want one after the other", r.ID, p.Id, other.ID, other.Phase)
			}
		}
	}
}

// CheckReplica checks a change of a replica's run. A replica has one run at a time, and the
// pool does not end the run while tasks have its slots.
func (w *Capacity) CheckReplica(before, r *run.Run) {
	if r.Serves == nil {
		return
	}
	if before == nil {
		w.Fleet.Started++
		for _, other := range w.Records.Ordered {
			// A run that has already ended may have ended before the other was created.
			if other.ID != r.ID && other.Serves != nil && *other.Serves == *r.Serves && !other.State.Terminal() && !r.State.Terminal() {
				w.Fail("%s of replica %s of %s is created while %s of it is %s", r.ID, r.Serves.Replica, r.Serves.Pool, other.ID, other.State)
			}
		}
	}
	if r.Cancel == nil || r.Cancel.By != "pool:"+r.Serves.Pool || before != nil && before.Cancel != nil {
		return
	}
	w.Fleet.Drained++
	if w.Plan.Skew > 0 { // by another host's clock it may have drained for longer
		return
	}
	if w.endedByDeletion(r) {
		return
	}
	for _, t := range w.Tasks {
		if t.Pool == r.Serves.Pool && t.Of == r.ID && w.Time.Now.Before(t.Until) {
			w.Fail("%s of replica %s of %s is ended while %s has a slot of it", r.ID, t.Replica, t.Pool, t.Ref.ID)
		}
	}
}

// endedByDeletion reports whether the end of a replica's run was decided while its pool did not
// exist. The keeper may store and carry out that decision after the pool was created again.
func (w *Capacity) endedByDeletion(r *run.Run) bool {
	for _, p := range w.Fleet.Pools {
		if p.Id != r.Serves.Pool || p.deletedFrom.IsZero() {
			continue
		}
		set, _ := w.storedSet(p)
		return slices.ContainsFunc(set.Replicas, func(one fleet.Replica) bool {
			exists := p.CreatedAt.After(p.deletedFrom)
			return one.Run == r.ID && one.Phase == fleet.ReplicaEnding && !one.Since.Before(p.deletedFrom) && !(exists && one.Since.After(p.CreatedAt))
		})
	}
	return false
}

// checkOwed checks that keepers do the next step for each replica in time, and that no run
// remains of a replica that the pool does not have.
func (w *Capacity) checkOwed(p *enginePool) {
	now := map[string]string{}
	least, most := p.counts(w.Time.Now)
	for _, r := range p.set.Replicas {
		if what := w.owedTo(p, r, least == most && w.numberOf(r) > most); what != "" {
			now[r.ID] = what
		}
	}
	for _, r := range w.Records.Ordered {
		if r.Serves == nil || r.Serves.Pool != p.Id || r.State.Terminal() || r.Cancel != nil {
			continue
		}
		i := slices.IndexFunc(p.set.Replicas, func(of fleet.Replica) bool { return of.ID == r.Serves.Replica })
		if i < 0 || p.set.Replicas[i].Run != r.ID && p.set.Replicas[i].Run != "" {
			now[r.ID] = "the end of a run that the pool does not have"
		}
	}
	for i := 1; least == most && p.settings != nil && i <= most; i++ {
		id := fmt.Sprint("r", i)
		if !slices.ContainsFunc(p.set.Replicas, func(r fleet.Replica) bool { return r.ID == id }) {
			now[id] = "its record"
		}
	}
	for id := range p.owed {
		if now[id] != p.owed[id].what {
			delete(p.owed, id)
		}
	}
	bound := 2*w.Config.SweepInterval + drainTime + 10*time.Second
	for id, what := range now {
		if _, known := p.owed[id]; !known {
			p.owed[id] = owed{what, w.Time.Now}
		}
		if late := w.Overdue(p.owed[id].since, bound, bound+w.Patience()); late > 0 {
			w.Fail("%s of %s waits %s too long for %s", id, p.Id, late, what)
		}
	}
}

// drainTime is how long a replica drains before its tasks are counted.
const drainTime = 5 * time.Second

// owedTo returns the action that a replica awaits from a keeper; empty if there is no such
// action. spare means that the pool does not need the replica.
func (w *Capacity) owedTo(p *enginePool, r fleet.Replica, spare bool) string {
	of := w.Records.ByID[r.Run]
	over := of != nil && of.State.Terminal()
	switch {
	case r.Run != "" && over:
		return "what follows the end of " + r.Run
	case spare && r.Phase != fleet.ReplicaDraining && r.Phase != fleet.ReplicaEnding:
		return "its end"
	case r.Phase == fleet.ReplicaWaiting && !w.Time.Now.Before(r.RetryAt.Add(2*w.Plan.Skew)):
		return fmt.Sprintf("its run %d", r.Number+1)
	case r.Phase == fleet.ReplicaStarting && r.Run == "":
		return fmt.Sprintf("the creation of its run %d", r.Number)
	case r.Phase == fleet.ReplicaStarting && of != nil && of.State == run.Running && of.EndRequest() == nil && w.addressed(of):
		return "its address"
	case r.Phase == fleet.ReplicaDraining && w.TasksOf(p.Id, r.ID) == 0:
		return "the end of " + r.Run
	case r.Phase == fleet.ReplicaEnding && of != nil && of.Cancel == nil:
		return "the request that " + r.Run + " ends"
	}
	return ""
}

// addressed reports whether the platform shows the machine of a run with its address.
func (w *Capacity) addressed(r *run.Run) bool {
	if w.Config.Runners.Shares(platform.Placement{}) {
		return true
	}
	m := w.Machines.ByID[r.Attempt.Machine.ID]
	return m != nil && m.Alive() && !w.Time.Now.Before(m.AddressedAt) && !w.Time.Now.Before(m.VisibleAt)
}

// Missing describes a pool without its number of replicas with the current settings, each on a
// machine. It returns "" if every pool has them.
func (w *Capacity) Missing() string {
	for _, p := range w.Fleet.Pools {
		set, _ := w.storedSet(p)
		if p.place == nil || p.place.Machines == nil || len(set.Replicas) != p.place.Machines.Count {
			return fmt.Sprintf("%s has %d replicas, want those of %+v", p.Id, len(set.Replicas), p.place)
		}
		for _, r := range set.Replicas {
			of := w.Records.ByID[r.Run]
			if r.Phase != fleet.ReplicaServing || r.URL == "" || of == nil || of.State != run.Running || r.Model != p.place.Model || r.AskedPort != p.place.Machines.Port {
				return fmt.Sprintf("replica %s of %s is %+v", r.ID, p.Id, r)
			}
			if m := w.Machines.ByID[of.Attempt.Machine.ID]; m == nil || !m.Alive() {
				return fmt.Sprintf("replica %s of %s has no machine", r.ID, p.Id)
			}
		}
	}
	return ""
}
