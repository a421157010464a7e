package app

import (
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/shared/series"
)

// KeepReplicas makes a process update the replicas of pools after its commits. runner returns the
// addresses of machines.
func KeepReplicas(runner port.Runner, hex orchestrator.Hex, config orchestrator.Config) orchestrator.ReplicaRuns {
	return orchestrator.KeepReplicas(hex, func(runs orchestrator.Creations) orchestrator.ReplicaKeeper {
		store, c, log, known := runs.Parts()
		return pools.NewKeeper(runs, store, c, log, known, runner, poolConfig(config))
	})
}

// Drains returns the drains of the pools of a lifecycle.
func Drains(life *orchestrator.Lifecycle, config orchestrator.Config) *pools.Drains {
	runs := orchestrator.NewCommits(life)
	store, c, log, known := runs.Parts()
	return pools.NewDrains(runs, store, c, log, known, poolConfig(config))
}

// Pools returns the use cases of the pools of a lifecycle; see pools.New.
func Pools(
	life *orchestrator.Lifecycle, document func(run.Pool) ([]byte, error), health pools.EngineHealths, record series.Recorder, config orchestrator.Config,
) *pools.Pools {
	return pools.New(Drains(life, config), document, health, record)
}

// poolConfig returns the part of a configuration that is about pools.
func poolConfig(c orchestrator.Config) pools.Config {
	return pools.Config{
		Policy: c.Policy, Host: c.Host, Runners: c.Runners, CheckPodDefaults: c.CheckPodDefaults,
		Engines: c.Engines, MockEngine: c.MockEngine, FreePort: c.FreePort, Loopback: c.Loopback,
	}
}
