package capacity

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// dispatchTime is an upper limit for the time from reading a pool's replicas to committing a
// task with a slot.
const dispatchTime = 4 * time.Second

// takeTasks simulates the dispatchers of a pool, which give slots of replicas to tasks.
func (w *Capacity) takeTasks(p *enginePool) {
	for n := 1; !w.Fleet.closing; n++ {
		w.Time.Sleep(w.UpTo(20 * time.Second))
		if p.paused || w.Healed || p.place == nil || p.place.Machines == nil {
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
		of := serving[w.Random.IntN(len(serving))]
		w.Time.Sleep(w.UpTo(dispatchTime))
		if p.paused || w.Healed || w.TasksOf(p.Id, of.ID) >= 2 {
			continue
		}
		t := &harness.ReplicaTask{Ref: run.Ref{Tenant: harness.Client.Tenant, ID: fmt.Sprintf("task-%s-%d", p.Id, n)}, Pool: p.Id, Replica: of.ID, Of: of.Run}
		t.Until = w.Time.Now.Add(w.UpTo(w.Longest / 4))
		w.Tasks = append(w.Tasks, t)
		w.Fleet.Taken++
		w.Note("%s has a slot of replica %s until %s", t.Ref.ID, t.Replica, t.Until.Sub(harness.Start))
	}
}
