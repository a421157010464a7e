// The function push sends new events to connections. The queue of connections invokes it.
package main

import (
	"context"

	"github.com/sortie-dev/sortie/functions/push"
	"github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/sockets"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("push")
	pusher := sockets.Pusher(p, deployed.Store(p), stream.Messages)
	p.ServeEvent(lambdakit.Task(push.Handler(pusher.Push, func(ctx context.Context, tenant string, err error) {
		lambdakit.Count(ctx, "PushFailures", 1)
		p.Log.ErrorContext(ctx, "cannot send events to connections; the sweep queues their tenant again", "tenant", tenant, "error", err.Error())
	})))
}
