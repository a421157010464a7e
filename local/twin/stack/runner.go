package stack

import (
	"maps"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/adapter/runner"
	service "github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// offer returns the runners, clusters and apps that pools of this stack can name.
func (s *Stack) offer() platform.RunnerOffer {
	o := runnerOffer()
	if s.kubernetes != nil {
		o.Runners, o.Clusters = append(o.Runners, platform.RunnerKubernetes), []string{s.config.Settings.Kubernetes.Cluster}
		o.Addressed = append(o.Addressed, platform.RunnerKubernetes)
	}
	if s.containers == nil {
		return o
	}
	o.Runners, o.Addressed = append(o.Runners, platform.RunnerContainer), append(o.Addressed, platform.RunnerContainer)
	for _, address := range s.config.Containers.Tried {
		if socket, ok := strings.CutPrefix(address, "unix://"); ok {
			o.Sockets = append(o.Sockets, socket)
		}
	}
	return o
}

// runnerOffer returns the offer of every stack. The runners process and fly are the same: the
// local Fly Machines API, which starts processes. Pools that name fly obey Fly's limits.
func runnerOffer() platform.RunnerOffer {
	hosts := []string{platform.RunnerProcess, platform.RunnerFly}
	return platform.RunnerOffer{Runners: hosts, FlyApps: []string{service.DefaultApp}, Hosted: hosts}
}

// openRunner returns the runner for all runners of offer.
func (s *Stack) openRunner() (port.Runner, error) {
	machines, err := fly.New(fly.Config{
		Apps: []string{service.DefaultApp}, Token: s.memory.secret(secretMachines, 20), BaseURL: s.addresses.Machines,
		Cluster: "local", Logs: true, Clock: s.clock, Log: s.config.Log,
	})
	if err != nil {
		return nil, err
	}
	runners := map[string]port.Runner{platform.RunnerProcess: machines, platform.RunnerFly: machines}
	if s.kubernetes != nil {
		runners[platform.RunnerKubernetes] = s.kubernetes
	}
	if s.containers == nil {
		return runner.New(platform.RunnerProcess, runners)
	}
	runners[platform.RunnerContainer] = s.containers
	all, err := runner.New(platform.RunnerProcess, runners)
	if err != nil {
		return nil, err
	}
	return byImage{all, s.bound()}, nil
}

// bound returns the names of the images that are programs of this host.
func (s *Stack) bound() []string {
	return append(slices.Sorted(maps.Keys(s.config.Images)), s.config.Settings.Service.Image)
}
