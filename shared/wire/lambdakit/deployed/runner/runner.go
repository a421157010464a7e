// Package runner makes the runners of a deployed function.
package runner

import (
	"context"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/fly"
	dispatch "github.com/sortie-dev/sortie/shared/adapter/runner"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// New returns the runners that pools can name. The default runner is that of
// deployed.RunnerOffer.
func New(p *process.Process) port.Runner {
	runners := map[string]port.Runner{}
	if machines := flyMachines(p); machines != nil {
		runners[platform.RunnerFly] = machines
	}
	if pods := kubernetesJobs(p); pods != nil {
		runners[platform.RunnerKubernetes] = pods
	}
	all, err := dispatch.New(deployed.RunnerOffer(p).Default(), runners)
	p.Check(err)
	return all
}

// flyMachines returns the Fly Machines of SORTIE_FLY_APPS, with the token of SORTIE_SECRET_FLY.
// It returns nil without apps. SORTIE_FLY_URL is the base URL of the Machines API, by default
// Fly's own. The runner creates at most one machine per second and app with a burst of 3, which
// is Fly's limit. Other processes of the function do the same, so Fly may still throttle.
func flyMachines(p *process.Process) port.Runner {
	apps, base := p.List("SORTIE_FLY_APPS", ""), p.Option("SORTIE_FLY_URL", fly.DefaultBaseURL)
	if len(apps) == 0 {
		return nil
	}
	secret, err := secrets.Open[secrets.Fly](p.AWS(), p.Need("SORTIE_SECRET_FLY"), secrets.Config{Clock: p.Clock(), Log: p.Log})
	p.Check(err)
	runner, err := fly.New(fly.Config{
		Apps: apps, BaseURL: base,
		CurrentToken: func(ctx context.Context) (string, error) {
			document, err := secret.Get(ctx)
			return document.Token, err
		},
		Cluster: cluster(p), CreatesPerSecond: fly.DocumentedRate, Burst: fly.DocumentedBurst, Clock: p.Clock(), Log: p.Log,
	})
	p.Check(err)
	return runner
}

// cluster returns the name of this deployment: account, region and stage. Several deployments
// may share an app. Each manages only the machines with its own cluster name.
func cluster(p *process.Process) string {
	arn := strings.Split(p.Need("SORTIE_STATE_MACHINE"), ":")
	if len(arn) < 5 {
		return p.Stage // stepfunctions.New reports the malformed ARN
	}
	return arn[4] + "/" + arn[3] + "/" + p.Stage
}
