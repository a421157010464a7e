package deployed

import (
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/sqs"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/stream"
)

// SocketReception returns the receiver of connections. It sends their tenants to the queue
// SORTIE_PUSHES. SORTIE_READERS is the limit of open connections of a tenant.
func SocketReception(p *process.Process, store *dynamo.Store) *stream.Reception {
	readers := integer(p, "SORTIE_READERS", p.Need("SORTIE_READERS"))
	return stream.NewReception(Feed(p, store), store, Pushes(p, p.Need("SORTIE_PUSHES")), store, readers, lambdakit.Observe, p.Clock(), p.Rand)
}

// Waker returns a waker that enqueues the tenants with connections. It returns nil without
// SORTIE_PUSHES: the stage then has no WebSocket API.
func Waker(p *process.Process, store *dynamo.Store) *stream.Waker {
	url := p.Option("SORTIE_PUSHES", "")
	if url == "" {
		return nil
	}
	return stream.NewWaker(store, Pushes(p, url), p.Clock(), p.Log, p.Rand)
}

// Pushes returns the queue with the URL.
func Pushes(p *process.Process, url string) port.Pushes {
	queue, err := sqs.NewPushes(p.AWS(), url)
	p.Check(err)
	return queue
}
