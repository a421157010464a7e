// Package dispatching makes the use cases of inference tasks from a process's variables, for
// bootstraps. It is separate from package deployed because most functions do not call a
// dispatcher.
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

// Caller returns what invokes the function whose ARN is SORTIE_DISPATCH.
func Caller(p *process.Process) orchestrator.CallDispatcher {
	function, err := lambda.New(p.AWS(), p.Need("SORTIE_DISPATCH"))
	p.Check(err)
	return func(ctx context.Context, call orchestrator.DispatchCall) error { return function.Invoke(ctx, call) }
}

// Lifecycle is deployed.Lifecycle for a function whose commits may give a dispatcher
// something to do.
func Lifecycle(p *process.Process) (*orchestrator.Lifecycle, orchestrator.Config) {
	life, config := deployed.Lifecycle(p)
	orchestrator.CallDispatchers(life, Caller(p))
	return life, config
}

// Inference returns the use cases of the clients of inference tasks. A cancel request by
// requests then ends the stream of its task.
func Inference(p *process.Process, requests *orchestrator.Requests, store *dynamo.Store, config orchestrator.Config) *orchestrator.Inference {
	requests.Record(lambdakit.Observe)
	models := orchestrator.NewModels(requests.Records, api.ModelDocument, config)
	return orchestrator.NewInference(requests, models, deployed.Answers(p, store, config))
}
