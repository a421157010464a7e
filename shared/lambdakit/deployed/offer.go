package deployed

import (
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/shared/setting/service"
)

// RunnerOffer returns what pools can name: the runners of package runner and their
// settings. SORTIE_FLY_APPS are the apps.
func RunnerOffer(p *process.Process) run.RunnerOffer {
	return run.RunnerOffer{Runners: []string{run.RunnerFly}, FlyApps: p.List("SORTIE_FLY_APPS", service.DefaultApp)}
}
