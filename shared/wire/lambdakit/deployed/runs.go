package deployed

import (
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// Records returns the runs in the table of store.
func Records(p *process.Process, store port.Store) *runs.Records {
	return runs.NewRecords(store, p.Clock(), p.Log)
}

// Lifecycle returns the lifecycle of the runs in the table, with the settings of the service.
// actions, replicas and tasks say which work follows its commits.
func Lifecycle(
	p *process.Process, actions runs.EndActions, replicas runs.ReplicaRuns, tasks runs.TaskServer, config runs.Config,
) *runs.Lifecycle {
	return runs.NewLifecycle(Records(p, Store(p)), Executions(p), actions, replicas, tasks, config)
}

// Committing returns a lifecycle that leaves all work after its commits to a sweep.
func Committing(p *process.Process, config runs.Config) *runs.Lifecycle {
	leave := runs.LeaveToSweep{}
	return Lifecycle(p, leave, leave, leave, config)
}

// Runs returns the use cases that create runs.
func Runs(p *process.Process, config runs.Config) *runs.Runs {
	objects, _ := Outputs(p)
	requests := runs.NewRequests(Committing(p, config), p.Hex, runs.LeaveToSweep{}, config)
	return runs.NewRuns(requests, objects)
}
