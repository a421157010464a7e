package deployed

import (
	"github.com/sortie-dev/sortie/shared/adapter/probe"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Reception returns the receiver of heartbeats at SORTIE_PUBLIC_URL. Signer signs the tokens of
// its canaries.
func Reception(p *process.Process, records *orchestrator.Records, config orchestrator.Config) *orchestrator.Reception {
	tokens := grants.NewTokens(Signer(p), p.Clock(), p.Hex)
	canary := probe.New(p.Need("SORTIE_PUBLIC_URL"), orchestrator.CanaryTask)
	return orchestrator.NewReception(records, tokens, canary, config)
}
