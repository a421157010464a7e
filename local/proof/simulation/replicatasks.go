package simulation

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// dispatchTime is an upper limit for the time from reading a pool's replicas to committing a
// task with a slot.
const dispatchTime = 4 * time.Second

// takeTasks simulates the dispatchers of a pool, which give slots of replicas to tasks.
func (w *world) takeTasks(p *enginePool) {
	for n := 1; !w.fleet.closing; n++ {
		w.time.sleep(w.upTo(20 * time.Second))
		if p.paused || w.healed || p.place == nil || p.place.Machines == nil {
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
		if p.paused || w.healed || w.tasksOf(p.id, of.ID) >= 2 {
			continue
		}
		t := &replicaTask{ref: run.Ref{Tenant: client.Tenant, ID: fmt.Sprintf("task-%s-%d", p.id, n)}, pool: p.id, replica: of.ID, of: of.Run}
		t.until = w.time.now.Add(w.upTo(w.longest / 4))
		w.tasks = append(w.tasks, t)
		w.fleet.taken++
		w.note("%s has a slot of replica %s until %s", t.ref.ID, t.replica, t.until.Sub(start))
	}
}
