package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// replicaTask is a task with a slot of a replica.
type replicaTask struct {
	ref           run.Ref
	pool, replica string
	// of is the id of the replica's run.
	of    string
	until time.Time
}

// dispatchTime is an upper limit for the time from reading a pool's replicas to committing a
// task with a slot.
const dispatchTime = 4 * time.Second

// takeTasks simulates the dispatchers of a pool, which give slots of replicas to tasks.
func (w *world) takeTasks(p *enginePool) {
	for n := 1; !w.fleet.closing; n++ {
		w.time.sleep(w.upTo(20 * time.Second))
		if p.paused || w.fleet.healed || p.place == nil || p.place.Machines == nil {
			continue
		}
		var serving []platform.EngineReplica
		set, ok := w.storedSet(p)
		if model := p.place.Model; ok {
			serving = set.Serving(platform.Pool{Engine: &platform.EnginePlace{Model: model}})
		}
		if len(serving) == 0 {
			continue
		}
		of := serving[w.random.IntN(len(serving))]
		w.time.sleep(w.upTo(dispatchTime))
		if p.paused || w.fleet.healed || w.tasksOf(p.id, of.ID) >= 2 {
			continue
		}
		t := &replicaTask{ref: run.Ref{Tenant: client.Tenant, ID: fmt.Sprintf("task-%s-%d", p.id, n)}, pool: p.id, replica: of.ID, of: of.Run}
		t.until = w.time.now.Add(w.upTo(w.longest / 4))
		w.fleet.tasks = append(w.fleet.tasks, t)
		w.fleet.taken++
		w.note("%s has a slot of replica %s until %s", t.ref.ID, t.replica, t.until.Sub(start))
	}
}

// tasksOf counts the tasks of a replica. An empty replica means all of the pool.
func (w *world) tasksOf(pool, replica string) (n int) {
	w.fleet.tasks = slices.DeleteFunc(w.fleet.tasks, func(t *replicaTask) bool { return !w.time.now.Before(t.until) })
	for _, t := range w.fleet.tasks {
		if t.pool == pool && (replica == "" || t.replica == replica) {
			n++
		}
	}
	return n
}

// Holders implements port.Store. It adds the tasks of simulated dispatchers, which are not in
// the database.
func (s *crashingStore) Holders(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	found, err := s.Store.Holders(ctx, tenant, pool, limit)
	if s.w.fleet != nil && err == nil && s.w.tasksOf(pool, "") > 0 {
		for _, t := range s.w.fleet.tasks {
			if t.pool == pool {
				found = append(found, t.ref)
			}
		}
	}
	return found, err
}

// Load implements port.Store.
func (s *crashingStore) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	if s.w.fleet == nil || !strings.HasPrefix(ref.ID, "task-") {
		return s.Store.Load(ctx, ref)
	}
	for _, t := range s.w.fleet.tasks {
		if t.ref == ref {
			r := run.Run{Tenant: ref.Tenant, ID: ref.ID, State: run.Running, Slot: platform.Slot{Pool: t.pool, State: platform.SlotHeld}}
			r.Attempt.Replica = t.replica
			return r, nil
		}
	}
	return run.Run{}, port.ErrNotFound
}
