package deployed

import (
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Lifecycle returns the lifecycle of the runs in the table, with the settings of the service.
func Lifecycle(p *process.Process) (*orchestrator.Lifecycle, orchestrator.Config) {
	config := p.Settings()
	records := orchestrator.NewRecords(Store(p), p.Clock(), p.Log)
	return orchestrator.NewLifecycle(records, Executions(p), config), config
}

// Runs returns the use cases that create runs, with the settings of the service.
func Runs(p *process.Process) (*orchestrator.Runs, orchestrator.Config) {
	life, config := Lifecycle(p)
	objects, _ := Outputs(p)
	return orchestrator.NewRuns(orchestrator.NewRequests(life, p.Hex, config), objects), config
}
