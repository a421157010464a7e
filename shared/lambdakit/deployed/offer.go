package deployed

import (
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/shared/setting/service"
)

// RunnerOffer returns what pools can name: the runners of package runner and their
// settings. SORTIE_FLY_APPS are the apps, SORTIE_KUBERNETES_CLUSTER the cluster.
func RunnerOffer(p *process.Process) run.RunnerOffer {
	o := run.RunnerOffer{Runners: []string{run.RunnerFly}, FlyApps: p.List("SORTIE_FLY_APPS", service.DefaultApp), Addressed: []string{run.RunnerFly}}
	if cluster := p.Option("SORTIE_KUBERNETES_CLUSTER", ""); cluster != "" {
		o.Runners, o.Clusters = append(o.Runners, run.RunnerKubernetes), []string{cluster}
		o.Addressed = append(o.Addressed, run.RunnerKubernetes)
	}
	return o
}
