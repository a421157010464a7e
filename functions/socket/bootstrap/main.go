// The function socket serves a WebSocket API. The API invokes it with handshakes, with the ends
// of connections and with data of clients, which closes their connections.
package main

import (
	"github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/sockets"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("socket")
	reception, open := deployed.SocketReception(p, deployed.Store(p)), sockets.Open(p)
	tokens := grants.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
	p.ServeSockets(stream.ConnectRoutes(reception), deployed.ClientTokens(p), tokens.OpenTicket, gateway.SocketGateway{
		Path: stream.SocketPath, Left: reception.Leave, Message: open.Disconnect,
	})
}
