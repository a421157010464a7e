// The function dispatch serves inference tasks. Commits that give an inference task a slot and
// the sweep invoke it.
package main

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/functions/dispatch"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/dispatching"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/engines"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// nameLength is the number of random bytes in the name of a dispatcher.
const nameLength = 8

func main() {
	p := process.Start("dispatch")
	config, store := p.Settings(), deployed.Store(p)
	objects, _ := deployed.Outputs(p)
	answers := deployed.Answers(p, store, config)
	call, replicas := dispatching.Caller(p), engines.Replicas(p)
	serve := func(ctx context.Context, in inferences.DispatchCall, end time.Time) error {
		// Each invocation is a dispatcher of its own, with a worker id of its own.
		d, _ := app.NewDispatcher(
			app.TasksOnly(deployed.Records(p, store), config), p.Hex, answers, deployed.Models(p, store, config),
			deployed.Artifacts(p, store, objects, config), deployed.Prompts(p, store, objects), replicas.Of, lambdakit.Observe,
			inferences.DispatcherConfig{ID: "dispatcher-" + p.Hex(nameLength), Batch: dispatch.Batch, MostServed: dispatch.MostWithin}, config,
		)
		return d.ServePool(ctx, in, inferences.ServePoolConfig{Seats: store, Tasks: dispatch.Tasks, End: end, Call: call})
	}
	p.ServeEvent(dispatch.Handler(serve, p.Clock().Now))
}
