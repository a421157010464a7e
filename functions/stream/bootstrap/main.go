// The function stream serves the route of Server-Sent Events. Each of its processes serves one
// reader at a time.
package main

import (
	"github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("stream")
	streams := deployed.Streams(p, deployed.Store(p))
	tokens := grants.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
	p.ServeReaders(stream.Routes(streams, p.Clock()), deployed.ClientTokens(p), tokens.OpenTicket)
}
