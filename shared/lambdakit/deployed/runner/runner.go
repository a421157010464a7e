// Package runner makes the Runner of a deployed function: Fly Machines.
package runner

import (
	"context"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/port"
)

// app is the export contract's.
const app = "arke-mods-export-worker"

// New reads SORTIE_FLY_APPS, SORTIE_FLY_URL and SORTIE_SECRET_FLY. Machines are
// made at the pace that Fly allows: one a second and app, three at once. Each
// process has a pace of its own, so many of them are throttled by Fly, and try
// again.
func New(p *process.Process) port.Runner {
	secret, err := secrets.Open[secrets.Fly](p.AWS(), p.Need("SORTIE_SECRET_FLY"), secrets.Config{Clock: p.Clock(), Log: p.Log})
	p.Check(err)
	runner, err := fly.New(fly.Config{
		Apps: p.List("SORTIE_FLY_APPS", app), BaseURL: p.Option("SORTIE_FLY_URL", fly.DefaultBaseURL),
		CurrentToken: func(ctx context.Context) (string, error) {
			document, err := secret.Get(ctx)
			return document.Token, err
		},
		Cluster: cluster(p), CreatesPerSecond: 1, Burst: 3, Clock: p.Clock(), Log: p.Log,
	})
	p.Check(err)
	return runner
}

// cluster names this deployment among those whose machines are in the same app:
// by account, region and stage, for the machines of another are nobody's here.
func cluster(p *process.Process) string {
	arn := strings.Split(p.Need("SORTIE_STATE_MACHINE"), ":")
	if len(arn) < 5 {
		return p.Stage // whoever uses the ARN tells what is wrong with it
	}
	return arn[4] + "/" + arn[3] + "/" + p.Stage
}
