// The function events serves the routes of /v1/events except the streams.
package main

import (
	"github.com/sortie-dev/sortie/functions/events"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("events")
	streams := deployed.Pages(p, deployed.Store(p))
	tokens := grants.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
	p.ServeHTTP(events.Routes(streams, tokens), deployed.ClientTokens(p))
}
