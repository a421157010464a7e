// The program steps contains every step function of the run's state machine. It serves the
// function that SORTIE_STEP names, and creates only the adapters that this function uses.
package main

import (
	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.StartStep(steps.Functions())
	p.ServeTask(handlerOf(p, p.Settings()))
}

// handlerOf returns the handler of the process's function; nil for an unknown one, which the
// process reports.
func handlerOf(p *process.Process, config orchestrator.Config) lambdakit.TaskFunc {
	leave := orchestrator.LeaveToSweep{}
	switch p.Name {
	case "admit":
		return steps.Admit(orchestrator.NewAdmission(deployed.Committing(p, config)))
	case "constrain":
		return steps.Constrain(orchestrator.NewConditions(deployed.Committing(p, config), deployed.Hooks(p, config)))
	case "act":
		hooks := deployed.Hooks(p, config)
		life := deployed.Lifecycle(p, orchestrator.ActForJobs(hooks, p.Hex), leave, leave, config)
		return steps.Act(orchestrator.NewActions(orchestrator.NewRequests(life, p.Hex, leave, config), hooks))
	case "launch":
		p.Need("SORTIE_PUBLIC_URL") // the worker's environment contains it
		machines := orchestrator.NewMachines(deployed.Committing(p, config), runner.New(p))
		tokens := grants.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
		objects, bucket := deployed.Outputs(p)
		return steps.Launch(orchestrator.NewLaunches(
			machines, tokens, orchestrator.NewOutputs(machines.Records, objects), bucket, deployed.Secrets(p), api.Environment, p.Rand, config,
		))
	case "supervise":
		machines := orchestrator.NewMachines(deployed.Committing(p, config), runner.New(p))
		return steps.Supervise(orchestrator.NewSupervision(machines, deployed.Reception(p, machines.Records, config)))
	case "terminate":
		machines, hooks := runner.New(p), deployed.Hooks(p, config)
		life := deployed.Lifecycle(p, orchestrator.ActForJobs(hooks, p.Hex), app.KeepReplicas(machines, p.Hex, config), leave, config)
		objects, bucket := deployed.Outputs(p)
		return steps.Terminate(orchestrator.NewTermination(
			orchestrator.NewMachines(life, machines), orchestrator.NewOutputs(life.Records, objects),
			logs.New(orchestrator.NewTasks(life.Records), machines, objects, orchestrator.NewWorkerSecrets(bucket, deployed.Secrets(p)), p.Clock()),
			hooks, p.Rand, config,
		))
	}
	return nil
}
