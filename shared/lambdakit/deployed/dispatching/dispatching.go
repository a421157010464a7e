// Package dispatching makes the use cases of inference tasks from the variables of a process.
// It is for bootstraps. It is separate from package deployed because most functions do not call
// a dispatcher.
package dispatching

import (
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/lambda"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Caller returns a function that invokes the function whose ARN is SORTIE_DISPATCH.
func Caller(p *process.Process) orchestrator.CallDispatcher {
	function, err := lambda.New(p.AWS(), p.Need("SORTIE_DISPATCH"))
	p.Check(err)
	return func(ctx context.Context, call orchestrator.DispatchCall) error { return function.Invoke(ctx, call) }
}

// Inference returns the use cases for clients of inference tasks. Its commits leave everything
// but the calls of dispatchers to a sweep.
func Inference(p *process.Process, store *dynamo.Store, config orchestrator.Config) *orchestrator.Inference {
	leave := orchestrator.LeaveToSweep{}
	life := orchestrator.NewLifecycle(deployed.Records(p, store), orchestrator.NoExecutions{}, leave, leave, Caller(p), config)
	return orchestrator.NewInference(
		life, p.Hex, deployed.Answers(p, store, config), deployed.Models(p, store, config),
		orchestrator.NoTranscripts{}, lambdakit.Observe, config,
	)
}
