package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// servers is the pool of the replicas' machines, and serverJob their job.
const (
	servers   = "servers"
	serverJob = "server"
)

// replicaFleet is the observed state of the world's replicas.
type replicaFleet struct {
	Pools []*enginePool
	// ports is the number of ports given to servers on the process's host.
	ports int
	// operated means that the operator makes no more changes. healedAt is when all faults
	// have ended, so that each set reaches its number. closing and closed mean that the
	// pools end and have ended.
	operated, closing, closed bool
	healedAt                  time.Time
	// Started counts the runs of replicas, taken the tasks, and drained the replicas that were
	// ended after their tasks.
	Started, Taken, Drained int
}

// enginePool is an engine pool, as seen by its operator.
type enginePool struct {
	Id       string
	settings []replicaSetting
	// place is the operator's last definition; nil for a pool that does not exist.
	place *platform.EnginePlace
	// deletedFrom is when the last deletion was requested. createdAt is when the last creation
	// was acknowledged.
	deletedFrom, CreatedAt time.Time
	// paused means that no dispatcher takes tasks.
	paused bool
	// touched means that its set may have changed.
	touched bool
	set     fleet.ReplicaSet
	// owed are the awaited actions, by replica id.
	owed map[string]owed
}

// replicaSetting is a setting of the replicas of a pool.
type replicaSetting struct {
	count int
	// DoneAt is when the change was acknowledged; zero until then.
	DoneAt time.Time
}

// DrawFleet draws the engine pools.
func (w *Capacity) DrawFleet() {
	w.Fleet = &replicaFleet{}
	w.Config.Runners = platform.RunnerOffer{Runners: []string{platform.RunnerFly}, Addressed: []string{platform.RunnerFly}}
	if !w.OnAWS() && w.Chance(0.5) { // all machines run on the host of the process
		w.Config.Runners.Hosted = w.Config.Runners.Runners
		w.Config.FreePort = func() (int, error) {
			w.Fleet.ports++
			return 20000 + w.Fleet.ports, nil
		}
	}
	w.Pools = append(w.Pools, &pool{Id: servers, Definition: pools.Definition{QueueLimit: new(0)}})
	for i := range 1 + w.Random.IntN(2) {
		w.Fleet.Pools = append(w.Fleet.Pools, &enginePool{Id: fmt.Sprintf("engine-%d", i+1), owed: map[string]owed{}})
	}
}

// StartFleet defines the job and the models of the replicas. It schedules the pools' operators
// and tasks.
func (w *Capacity) StartFleet() {
	if w.Fleet == nil {
		return
	}
	limit := int((w.Longest + 30*time.Minute) / time.Second)
	document := fmt.Sprintf(`{"id":%q,"image":"worker","command":["serve"],"pool":%q,"completion":"exit","policy":{"timeLimitSeconds":%d}}`, serverJob, servers, limit)
	left := len(w.Fleet.Pools)
	w.Time.After(0, func() {
		w.Persist("definition of the job of replicas", func(ctx context.Context) error {
			_, _, err := w.System.Jobs.Put(ctx, harness.Client, serverJob, []byte(document), change.Precondition{})
			return err
		})
		for i := range 2 {
			w.Persist("model", func(ctx context.Context) error {
				_, _, err := w.System.Models.Create(ctx, harness.Client, modelName(i), catalog.Definition{
					Engines: []platform.EngineKind{platform.EngineLlamaCpp}, Workloads: []port.Workload{port.WorkloadCompletion},
				}, false)
				return err
			})
		}
		for _, p := range w.Fleet.Pools {
			w.Time.After(w.UpTo(10*time.Second), func() {
				w.operateReplicas(p)
				if left--; left == 0 {
					w.Fleet.operated = true
				}
			})
			w.Time.After(0, func() { w.takeTasks(p) })
		}
	})
}

func modelName(i int) string { return fmt.Sprintf("model-%d", i+1) }

// operateReplicas changes a pool: the number of its replicas, their port, whether Sortie runs
// them, the model, and whether the pool exists.
func (w *Capacity) operateReplicas(p *enginePool) {
	w.setCount(p, 1+w.Random.IntN(3))
	for range 2 + w.Random.IntN(5) {
		w.Time.Sleep(w.UpTo(w.Longest / 2))
		switch draw := w.Random.IntN(10); {
		case p.place == nil, draw < 3:
			w.setCount(p, 1+w.Random.IntN(4))
		case draw < 6 && p.place.Machines != nil:
			w.reload(p, p.place.Model)
		case draw == 6:
			w.quiesce(p, func() { w.reload(p, modelName(w.Random.IntN(2))) })
		case draw == 7:
			w.setCount(p, 0)
		case draw == 8:
			w.quiesce(p, func() { w.deleteEngine(p) })
		case p.place.Machines != nil:
			w.putEngine(p, w.place(p.place.Machines.Count, 8000+w.Random.IntN(2), p.place.Model))
		}
	}
	if p.place == nil || p.place.Machines == nil {
		w.setCount(p, 1+w.Random.IntN(3))
	}
}

// place returns an engine with count replicas that Sortie runs, or for 0 one at a fixed
// address.
func (w *Capacity) place(count, port int, model string) *platform.EnginePlace {
	place := &platform.EnginePlace{Kind: platform.EngineLlamaCpp, Model: model, Slots: 2}
	if count > 0 {
		place.Machines = &platform.EngineMachines{Job: serverJob, Count: count, Port: port}
	} else {
		place.Replicas = []platform.EngineReplica{{ID: "fixed", URL: "https://192.0.32.10"}}
	}
	return place
}

// setCount changes the number of replicas; 0 ends them.
func (w *Capacity) setCount(p *enginePool, count int) {
	model := modelName(0)
	if p.place != nil {
		model = p.place.Model
	}
	w.putEngine(p, w.place(count, 8000, model))
}

// putEngine creates or replaces a pool.
func (w *Capacity) putEngine(p *enginePool, place *platform.EnginePlace) {
	created := p.place == nil
	p.place = place
	count := 0
	if place.Machines != nil {
		count = place.Machines.Count
	}
	done := p.change(count)
	w.Persist(fmt.Sprintf("%d replicas of %s with %s: %+v", count, p.Id, place.Model, place.Replicas), func(ctx context.Context) error {
		_, _, err := w.System.Pools.Put(ctx, harness.Client, p.Id, pools.Definition{Limit: place.Limit(), Engine: place}, change.Precondition{})
		return err
	})
	if created {
		p.CreatedAt = w.Time.Now
	}
	done(w.Time.Now)
}

// reload makes the replicas of a pool load a model.
func (w *Capacity) reload(p *enginePool, model string) {
	w.Persist(fmt.Sprintf("reload of %s with %s", p.Id, model), func(ctx context.Context) error {
		_, err := w.System.Pools.Reload(ctx, harness.Client, p.Id, model, 0, change.Precondition{})
		return err
	})
	p.place.Model = model
}

// deleteEngine deletes a pool.
func (w *Capacity) deleteEngine(p *enginePool) {
	done := p.change(0)
	p.deletedFrom = w.Time.Now
	w.Persist("deletion of "+p.Id, func(ctx context.Context) error {
		return w.System.Pools.Delete(ctx, harness.Client, p.Id, change.Precondition{})
	})
	p.place = nil
	done(w.Time.Now)
}

// quiesce makes a change while the pool has no tasks.
func (w *Capacity) quiesce(p *enginePool, change func()) {
	p.paused = true
	for w.TasksOf(p.Id, "") > 0 {
		w.Time.Sleep(5 * time.Second)
	}
	change()
	p.paused = false
}

// change records that the operator changes the number of replicas. The returned function
// records the acknowledgement.
func (p *enginePool) change(count int) (done func(at time.Time)) {
	p.settings = append(p.settings, replicaSetting{count: count})
	last := len(p.settings) - 1
	return func(at time.Time) { p.settings[last].DoneAt = at }
}

// counts returns the smallest and largest number of replicas in the settings that a call may
// use if it began at since.
func (p *enginePool) counts(since time.Time) (least, most int) {
	for i, s := range slices.Backward(p.settings) {
		if i == len(p.settings)-1 {
			least = s.count
		}
		least, most = min(least, s.count), max(most, s.count)
		if !s.DoneAt.IsZero() && s.DoneAt.Before(since) {
			return least, most
		}
	}
	return 0, most
}

// heal ends all faults. From then on each set must reach its number.
func (w *Capacity) heal() {
	w.Note("nothing fails any more")
	w.Healed, w.Fleet.healedAt, w.Tasks = true, w.Time.Now, nil
}

// FleetQuiet reports whether no replica is left. After the last other run it ends all faults,
// waits until each set has its number, and then ends the pools.
func (w *Capacity) FleetQuiet() bool {
	f := w.Fleet
	switch {
	case f == nil:
		return true
	case !f.operated || w.AnyDown():
		return false
	case !w.Healed:
		for _, r := range w.Records.Ordered {
			if r.Serves == nil && (!r.State.Terminal() || harness.ActionsPending(r) != "") {
				return false
			}
		}
		w.heal()
		return false
	case !f.closing:
		if missing := w.Missing(); missing != "" {
			if late := w.Time.Now.Sub(f.healedAt) - 2*w.Patience() - 4*w.Longest; late > 0 {
				w.Fail("%s, %s after the last fault", missing, w.Time.Now.Sub(f.healedAt))
			}
			return false
		}
		f.closing = true
		w.Time.After(0, w.closeFleet)
		return false
	case !f.closed:
		return false
	}
	for _, p := range f.Pools {
		if _, ok := w.storedSet(p); ok {
			return false
		}
	}
	return true
}

// closeFleet ends the replicas of all pools.
func (w *Capacity) closeFleet() {
	for _, p := range w.Fleet.Pools {
		if w.Random.IntN(2) == 0 {
			w.deleteEngine(p)
		} else {
			w.setCount(p, 0)
		}
	}
	w.Fleet.closed = true
}

// storedSet reads the replica set of a pool. It returns false if there is no such set.
func (w *Capacity) storedSet(p *enginePool) (set fleet.ReplicaSet, ok bool) {
	if w.Process.Crashed {
		return set, false
	}
	w.Observe(func() {
		r, err := w.Process.Store.LoadResource(context.Background(), port.ResourceRef{Tenant: harness.Client.Tenant, Kind: "replicas", ID: p.Id})
		if err == nil {
			err = json.Unmarshal(r.Document, &set)
		}
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			w.Fail("cannot read the replicas of %s: %v", p.Id, err)
		}
		ok = err == nil
	})
	return set, ok
}
