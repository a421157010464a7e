package deployed

import (
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// RunnerOffer returns the runners and runner settings that a pool can name. SORTIE_FLY_APPS
// lists the apps, SORTIE_KUBERNETES_CLUSTER names the cluster. A deployment may have both, one
// or neither.
func RunnerOffer(p *process.Process) platform.RunnerOffer {
	var o platform.RunnerOffer
	if apps := p.List("SORTIE_FLY_APPS", ""); len(apps) > 0 {
		o.Runners, o.FlyApps = []string{platform.RunnerFly}, apps
	}
	if cluster := p.Option("SORTIE_KUBERNETES_CLUSTER", ""); cluster != "" {
		o.Runners, o.Clusters = append(o.Runners, platform.RunnerKubernetes), []string{cluster}
	}
	o.Addressed = o.Runners
	return o
}
