package stack

import (
	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/setting/service"
)

func (s *Stack) flyRunner() (port.Runner, error) {
	return fly.New(fly.Config{
		Apps: []string{service.DefaultApp}, Token: s.memory.secret(secretMachines, 20), BaseURL: s.addresses.Machines,
		Cluster: "local", Logs: true, Clock: s.clock, Log: s.config.Log,
	})
}
