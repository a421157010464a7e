// The program steps contains every step function of the run's state machine. It serves the
// function that SORTIE_STEP names, and creates only the adapters that this function uses.
package main

import (
	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.StartStep(steps.Functions())
	config := p.Settings()
	records := orchestrator.NewRecords(deployed.Store(p), p.Clock(), p.Log)
	life := orchestrator.NewLifecycle(records, deployed.Executions(p), config)
	var handler lambdakit.TaskFunc
	switch p.Name {
	case "admit":
		handler = steps.Admit(orchestrator.NewAdmission(life))
	case "constrain":
		handler = steps.Constrain(orchestrator.NewConditions(life, deployed.Hooks(p, config)))
	case "act":
		handler = steps.Act(actions(p, life, config))
	case "launch":
		p.Need("SORTIE_PUBLIC_URL") // the worker's environment contains it
		machines := orchestrator.NewMachines(life, runner.New(p))
		tokens := orchestrator.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
		objects, bucket := deployed.Outputs(p)
		handler = steps.Launch(orchestrator.NewLaunches(
			machines, tokens, orchestrator.NewOutputs(records, objects), bucket, deployed.Secrets(p), api.Environment, p.Rand, config,
		))
	case "supervise":
		machines := orchestrator.NewMachines(life, runner.New(p))
		handler = steps.Supervise(orchestrator.NewSupervision(machines, deployed.Reception(p, records, config)))
	case "terminate":
		machines := runner.New(p)
		actions(p, life, config)
		orchestrator.KeepReplicas(orchestrator.NewRequests(life, p.Hex, config), machines, config)
		objects, bucket := deployed.Outputs(p)
		handler = steps.Terminate(orchestrator.NewTermination(
			orchestrator.NewMachines(life, machines), orchestrator.NewOutputs(records, objects),
			orchestrator.NewLogs(records, machines, objects, bucket, deployed.Secrets(p)), deployed.Hooks(p, config), p.Rand, config,
		))
	}
	p.ServeTask(handler)
}

// actions makes the commits of life carry out the actions of jobs.
func actions(p *process.Process, life *orchestrator.Lifecycle, config orchestrator.Config) *orchestrator.Actions {
	return orchestrator.NewActions(life, deployed.Hooks(p, config), orchestrator.NewRequests(life, p.Hex, config).Triggered)
}
