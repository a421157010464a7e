package deployed

import (
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
)

// Records returns the runs in the table of store.
func Records(p *process.Process, store port.Store) *orchestrator.Records {
	return orchestrator.NewRecords(store, p.Clock(), p.Log)
}

// Lifecycle returns the lifecycle of the runs in the table, with the settings of the service.
// actions, replicas and tasks say which work follows its commits.
func Lifecycle(
	p *process.Process, actions orchestrator.EndActions, replicas orchestrator.ReplicaRuns, tasks orchestrator.TaskServer, config orchestrator.Config,
) *orchestrator.Lifecycle {
	return orchestrator.NewLifecycle(Records(p, Store(p)), Executions(p), actions, replicas, tasks, config)
}

// Committing returns a lifecycle that leaves all work after its commits to a sweep.
func Committing(p *process.Process, config orchestrator.Config) *orchestrator.Lifecycle {
	leave := orchestrator.LeaveToSweep{}
	return Lifecycle(p, leave, leave, leave, config)
}

// Runs returns the use cases that create runs.
func Runs(p *process.Process, config orchestrator.Config) *orchestrator.Runs {
	objects, _ := Outputs(p)
	requests := orchestrator.NewRequests(Committing(p, config), p.Hex, orchestrator.LeaveToSweep{}, config)
	return orchestrator.NewRuns(requests, objects)
}
