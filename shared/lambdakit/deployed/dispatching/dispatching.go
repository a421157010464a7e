// Package dispatching makes the use cases of inference tasks from the variables of a process.
// It is for bootstraps. It is separate from package deployed because most functions do not call
// a dispatcher.
package dispatching

import (
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/lambda"
	"github.com/sortie-dev/sortie/shared/api"
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

// Lifecycle is deployed.Lifecycle, but commits call the dispatchers that may have new work.
func Lifecycle(p *process.Process) (*orchestrator.Lifecycle, orchestrator.Config) {
	life, config := deployed.Lifecycle(p)
	orchestrator.CallDispatchers(life, Caller(p))
	return life, config
}

// Inference returns the use cases for clients of inference tasks. It also changes requests: a
// cancel request then ends the stream of its task.
func Inference(p *process.Process, requests *orchestrator.Requests, store *dynamo.Store, config orchestrator.Config) *orchestrator.Inference {
	requests.Record(lambdakit.Observe)
	models := orchestrator.NewModels(requests.Records, api.ModelDocument, config)
	return orchestrator.NewInference(requests, models, deployed.Answers(p, store, config))
}
