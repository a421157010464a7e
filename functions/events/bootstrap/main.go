// The function events serves the routes of /v1/events except the streams, and /v1/activity.
package main

import (
	"github.com/sortie-dev/sortie/functions/activity"
	"github.com/sortie-dev/sortie/functions/events"
	figures "github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("events")
	store := deployed.Store(p)
	streams, tally := deployed.Pages(p, store), figures.NewTally(store, deployed.Feed(p, store), p.Clock(), p.Log)
	tokens := grants.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
	p.ServeHTTP(append(events.Routes(streams, tokens), activity.Routes(tally)...), deployed.ClientTokens(p))
}
