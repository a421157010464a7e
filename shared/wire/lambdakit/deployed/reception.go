package deployed

import (
	"github.com/sortie-dev/sortie/shared/adapter/probe"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/reception"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// Reception returns the receiver of heartbeats at SORTIE_PUBLIC_URL. Signer signs the tokens of
// its canaries.
func Reception(p *process.Process, records *runs.Records, config runs.Config) *reception.Prober {
	tokens := grants.NewTokens(Signer(p), p.Clock(), p.Hex)
	canary := probe.New(p.Need("SORTIE_PUBLIC_URL"), runs.CanaryTask)
	return runs.NewReception(records, tokens, canary, config)
}
