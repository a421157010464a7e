package deployed

import (
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/sqs"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// SocketReception returns the receiver of connections. It sends their tenants to the queue
// SORTIE_PUSHES. SORTIE_READERS is the limit of open connections of a tenant.
func SocketReception(p *process.Process, store *dynamo.Store) *stream.Reception {
	readers := integer(p, "SORTIE_READERS", p.Need("SORTIE_READERS"))
	return stream.NewReception(Feed(p, store), store, Pushes(p, p.Need("SORTIE_PUSHES")), store, readers, lambdakit.Observe, p.Clock(), p.Rand)
}

// Receiver gets the tenants that may have new events. It has the methods of stream.Waker.
type Receiver interface {
	DispatchTenants(ctx context.Context, tenants []string) (failed int)
	Sweep(ctx context.Context) error
}

// noConnections is the Receiver of a stage without a WebSocket API.
type noConnections struct{}

// DispatchTenants implements Receiver.
func (noConnections) DispatchTenants(context.Context, []string) int { return 0 }

// Sweep implements Receiver.
func (noConnections) Sweep(context.Context) error { return nil }

// Waker returns a waker that enqueues the tenants with connections. Without SORTIE_PUSHES the
// stage has no WebSocket API, and the waker does nothing.
func Waker(p *process.Process, store *dynamo.Store) Receiver {
	url := p.Option("SORTIE_PUSHES", "")
	if url == "" {
		return noConnections{}
	}
	return stream.NewWaker(store, Pushes(p, url), p.Clock(), p.Log, p.Rand)
}

// Pushes returns the queue with the URL.
func Pushes(p *process.Process, url string) port.Pushes {
	queue, err := sqs.NewPushes(p.AWS(), url)
	p.Check(err)
	return queue
}
