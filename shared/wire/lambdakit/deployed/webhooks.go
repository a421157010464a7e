package deployed

import (
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/sqs"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// ownerLength is the number of random bytes in the name of a worker, enough for unique names.
const ownerLength = 8

// Webhooks returns the use cases of the webhooks in the table of store.
func Webhooks(p *process.Process, store *dynamo.Store, config runs.Config) *delivery.Webhooks {
	return delivery.NewWebhooks(subscriptions(p, store), sender(p, config), config.Hooks)
}

// Delivery returns a worker that delivers events to the webhooks in the table of store.
func Delivery(p *process.Process, store *dynamo.Store, config runs.Config) *delivery.Deliverer {
	return delivery.NewDeliverer(subscriptions(p, store), store, sender(p, config), p.Rand, p.Hex(ownerLength), lambdakit.Observe)
}

// subscriptions returns the webhooks in the table of store. The queue SORTIE_DELIVERIES wakes
// their workers.
func subscriptions(p *process.Process, store *dynamo.Store) *delivery.Subscriptions {
	wakes, err := sqs.New(p.AWS(), p.Need("SORTIE_DELIVERIES"))
	p.Check(err)
	return delivery.NewSubscriptions(store, Feed(p, store), wakes, api.WebhookDocument, p.Clock(), p.Log, chance{p})
}

func sender(p *process.Process, config runs.Config) *hook.Sender {
	return hook.NewSender(hook.Config{Policy: config.Hooks, Clock: p.Clock()})
}

// chance makes a process a source of random numbers and ids.
type chance struct{ *process.Process }

// Float64 returns a random number, 0 <= n < 1.
func (c chance) Float64() float64 { return c.Rand() }
