package deployed

import (
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/run"
)

// RunnerOffer returns the runners and runner settings that a pool can name. SORTIE_FLY_APPS
// lists the apps, SORTIE_KUBERNETES_CLUSTER names the cluster. A deployment may have both, one
// or neither.
func RunnerOffer(p *process.Process) run.RunnerOffer {
	var o run.RunnerOffer
	if apps := p.List("SORTIE_FLY_APPS", ""); len(apps) > 0 {
		o.Runners, o.FlyApps = []string{run.RunnerFly}, apps
	}
	if cluster := p.Option("SORTIE_KUBERNETES_CLUSTER", ""); cluster != "" {
		o.Runners, o.Clusters = append(o.Runners, run.RunnerKubernetes), []string{cluster}
	}
	o.Addressed = o.Runners
	return o
}
