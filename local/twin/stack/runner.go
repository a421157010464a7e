package stack

import (
	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/adapter/runner"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/shared/setting/service"
)

// runnerOffer is what pools can name. The runners process and fly are the same: the
// local Fly Machines API, which starts processes.
func runnerOffer() run.RunnerOffer {
	return run.RunnerOffer{Runners: []string{run.RunnerProcess, run.RunnerFly}, FlyApps: []string{service.DefaultApp}}
}

// openRunner returns the runners of runnerOffer.
func (s *Stack) openRunner() (port.Runner, error) {
	machines, err := fly.New(fly.Config{
		Apps: []string{service.DefaultApp}, Token: s.memory.secret(secretMachines, 20), BaseURL: s.addresses.Machines,
		Cluster: "local", Logs: true, Clock: s.clock, Log: s.config.Log,
	})
	if err != nil {
		return nil, err
	}
	return runner.New(run.RunnerProcess, map[string]port.Runner{run.RunnerProcess: machines, run.RunnerFly: machines})
}
