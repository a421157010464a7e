// The function inference serves the routes of inference tasks, their streams, sessions and
// budgets, and those of the OpenAI API. Each of its processes serves one caller at a time.
package main

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/functions/dispatch"
	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/functions/openai"
	"github.com/sortie-dev/sortie/shared/app/budgets"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/dispatching"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// pad is the interval of the white space before an answer that is not streamed to its caller.
// Without it, API Gateway would end the response.
const pad = 10 * time.Second

func main() {
	p := process.Start("inference")
	config, store := p.Settings().WithMostWithin(dispatch.MostWithin), deployed.Store(p)
	tasks, life := dispatching.Inference(p, store, config)
	tokens := grants.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
	p.ServeReaders(slices.Concat(
		inference.Routes(tasks, p.Clock()), openai.PaddedRoutes(tasks, p.Clock(), p.Streamed(pad)),
		inference.BudgetRoutes(budgets.NewAccounts(store, life, p.Clock(), api.BudgetDocument, config.Budgets), p.Clock()),
	), deployed.ClientTokens(p), tokens.OpenTicket)
}
