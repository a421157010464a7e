// Package sockets makes the adapter of a WebSocket API from the variables of a process. It is
// for the bootstraps of the API's functions. It is separate from package deployed because the
// other functions do not use the Management API.
package sockets

import (
	"github.com/sortie-dev/sortie/shared/adapter/apigateway"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// Open returns the connections of the WebSocket API. SORTIE_SOCKETS_URL is the URL of the API's
// stage.
func Open(p *process.Process) port.Sockets {
	sockets, err := apigateway.New(p.AWS(), p.Need("SORTIE_SOCKETS_URL"))
	p.Check(err)
	return sockets
}

// Pusher returns a pusher of events to those connections. render writes the messages.
func Pusher(p *process.Process, store *dynamo.Store, render stream.Render) *stream.Pusher {
	return stream.NewPusher(stream.PusherConfig{
		Feed: deployed.Feed(p, store), Connections: store, Sockets: Open(p), Pushes: deployed.Pushes(p, p.Need("SORTIE_PUSHES")), Seats: store,
		Holds:  httpkit.HolderCheck(deployed.ClientTokens(p), p.Clock().Now),
		Render: render, Record: lambdakit.Observe, Clock: p.Clock(), Log: p.Log, Random: p.Rand,
	})
}
