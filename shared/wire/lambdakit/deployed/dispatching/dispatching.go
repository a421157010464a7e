// Package dispatching makes the use cases of inference tasks from the variables of a process.
// It is for bootstraps. It is separate from package deployed because most functions do not call
// a dispatcher.
package dispatching

import (
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/lambda"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// Caller returns a function that invokes the function whose ARN is SORTIE_DISPATCH.
func Caller(p *process.Process) inferences.CallDispatcher {
	function, err := lambda.New(p.AWS(), p.Need("SORTIE_DISPATCH"))
	p.Check(err)
	return func(ctx context.Context, call inferences.DispatchCall) error { return function.Invoke(ctx, call) }
}

// Calls makes the commits of a process call that function.
func Calls(p *process.Process) inferences.Calls { return inferences.NewCalls(Caller(p), p.Log) }

// Inference returns the use cases for clients of inference tasks, and the lifecycle of their runs.
// Its commits leave everything but the calls of dispatchers to a sweep.
func Inference(p *process.Process, store *dynamo.Store, config runs.Config) (*inferences.Inference, *runs.Lifecycle) {
	answers := deployed.Answers(p, store, config)
	objects, _ := deployed.Outputs(p)
	life := app.TasksOnly(deployed.Records(p, store), config)(Calls(p))
	requests := runs.NewRequests(life, p.Hex, runs.StreamsIn(answers), config)
	records := inferences.NoTranscripts{ArtifactRecords: deployed.Artifacts(p, store, objects, config)}
	return app.NewInference(requests, p.Hex, answers, deployed.Models(p, store, config), records, deployed.Prompts(p, store, objects), lambdakit.Observe, config), life
}
