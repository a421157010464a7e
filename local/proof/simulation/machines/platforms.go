package machines

import (
	"context"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/adapter/runner"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// NewRunner returns the runner of the world: one platform, or a runner that dispatches to the
// platforms of a mixed world.
func (w *Machines) NewRunner() (port.Runner, error) {
	if w.Warmed() && !w.Mixed() {
		return flyMachines{newProvider(w, platform.RunnerFly, harness.RunnerOutage)}, nil
	}
	if !w.Mixed() {
		return newProvider(w, platform.RunnerFly, harness.RunnerOutage), nil
	}
	w.Engine = newContainers(w, platform.RunnerContainer)
	platforms := []port.Runner{newProvider(w, platform.RunnerFly, harness.RunnerOutage), newCluster(w, platform.RunnerKubernetes), w.Engine}
	if w.Warmed() {
		platforms[0] = flyMachines{newProvider(w, platform.RunnerFly, harness.RunnerOutage)}
	}
	byName := map[string]port.Runner{}
	for i, name := range w.Config.Runners.Runners {
		byName[name] = platforms[i]
	}
	dispatcher, err := runner.New(platform.RunnerFly, byName)
	return dispatched{dispatcher, platforms}, err
}

// dispatched is a runner of several platforms. It lists them in sequence, because a call of the
// simulation has one thread.
type dispatched struct {
	*runner.Runner
	platforms []port.Runner
}

// List implements port.Runner.
func (d dispatched) List(ctx context.Context, each func(port.MachineStatus) bool) (failed error) {
	more := true
	for _, p := range d.platforms {
		if !more {
			break
		}
		err := p.List(ctx, func(m port.MachineStatus) bool {
			more = each(m)
			return more
		})
		if err != nil {
			failed = err
		}
	}
	if !more {
		return nil
	}
	return failed
}
