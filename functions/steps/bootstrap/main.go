// The program steps contains every step function of the run's state machine. It serves the
// function that SORTIE_STEP names, and creates only the adapters that this function uses.
package main

import (
	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.StartStep(steps.Functions())
	p.ServeTask(handlerOf(p, p.Settings()))
}

// handlerOf returns the handler of the process's function; nil for an unknown one, which the
// process reports.
func handlerOf(p *process.Process, config runs.Config) lambdakit.TaskFunc {
	leave := runs.LeaveToSweep{}
	switch p.Name {
	case "admit":
		return steps.Admit(runs.NewAdmission(deployed.Committing(p, config)))
	case "constrain":
		return steps.Constrain(runs.NewConditions(deployed.Committing(p, config), deployed.Hooks(p, config)))
	case "act":
		hooks := deployed.Hooks(p, config)
		life := deployed.Lifecycle(p, runs.ActForJobs(hooks, p.Hex, app.Children), leave, leave, config)
		return steps.Act(runs.NewActions(runs.NewRequests(life, p.Hex, leave, config), hooks))
	case "launch":
		p.Need("SORTIE_PUBLIC_URL") // the worker's environment contains it
		life := deployed.Lifecycle(p, runs.StartChildren(p.Hex, app.Children), leave, leave, config)
		machines := runs.NewMachines(life, runner.New(p))
		tokens := grants.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
		objects, bucket := deployed.Outputs(p)
		return steps.Launch(runs.NewLaunches(
			machines, tokens, runs.NewOutputs(machines.Records, objects), bucket, deployed.Secrets(p), api.Environment, p.Rand, config,
		))
	case "supervise":
		machines := runs.NewMachines(deployed.Committing(p, config), runner.New(p))
		return steps.Supervise(runs.NewSupervision(machines, deployed.Reception(p, machines.Records, config)))
	case "terminate":
		machines, hooks := runner.New(p), deployed.Hooks(p, config)
		life := deployed.Lifecycle(p, runs.ActForJobs(hooks, p.Hex, app.Children), app.KeepReplicas(machines, p.Hex, config), leave, config)
		objects, bucket := deployed.Outputs(p)
		return steps.Terminate(runs.NewTermination(
			runs.NewMachines(life, machines), runs.NewOutputs(life.Records, objects),
			logs.New(runs.NewTasks(life.Records), machines, objects, grants.NewWorkerSecrets(bucket, deployed.Secrets(p)), p.Clock()),
			hooks, p.Rand, config,
		))
	}
	return nil
}
