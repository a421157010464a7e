// The function deliver delivers events to webhooks. The queue of webhooks invokes it.
package main

import (
	"context"

	"github.com/sortie-dev/sortie/functions/deliver"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("deliver")
	delivery := deployed.Delivery(p, deployed.Store(p), p.Settings())
	p.ServeEvent(lambdakit.Task(deliver.Handler(delivery.Deliver, func(ctx context.Context, messageID string, err error) {
		lambdakit.Count(ctx, "DeliverFailures", 1)
		p.Log.ErrorContext(ctx, "cannot deliver to a webhook", "message", messageID, "error", err.Error())
	})))
}
