package app

import (
	"github.com/sortie-dev/sortie/shared/app/downloads"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/warm"
	"github.com/sortie-dev/sortie/shared/balance"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/shared/series"
)

// KeepReplicas makes a process update the replicas of pools after its commits. runner returns the
// addresses of machines.
func KeepReplicas(runner port.Runner, hex orchestrator.Hex, config orchestrator.Config) orchestrator.ReplicaRuns {
	return orchestrator.KeepReplicas(hex, func(runs orchestrator.Creations) orchestrator.ReplicaKeeper {
		c, log, known := runs.Parts()
		return pools.NewKeeper(runs, runs.Store(), c, log, known, runner, poolConfig(config))
	})
}

// Drains returns the drains of the pools of a lifecycle.
func Drains(life *orchestrator.Lifecycle, config orchestrator.Config) *pools.Drains {
	runs := orchestrator.NewCommits(life)
	c, log, known := runs.Parts()
	return pools.NewDrains(runs, runs.Store(), c, log, known, poolConfig(config))
}

// Pools returns the use cases of the pools of a lifecycle; see pools.New.
func Pools(
	life *orchestrator.Lifecycle, document func(run.Pool) ([]byte, error), health pools.EngineHealths, record series.Recorder, config orchestrator.Config,
) *pools.Pools {
	return pools.New(Drains(life, config), document, health, record)
}

// NewInference returns the use cases for clients of inference tasks in a process without a
// dispatcher; see inferences.New.
func NewInference(
	requests *orchestrator.Requests, hex orchestrator.Hex, feed port.AnswerFeed, models inferences.Catalog, transcripts inferences.Transcripts,
	record series.Recorder, config orchestrator.Config,
) *inferences.Inference {
	runs := orchestrator.NewCreations(requests)
	return inferences.New(runs, runs.Store(), hex, feed, models, transcripts, record, taskConfig(config))
}

// NewDispatcher returns a dispatcher, and the requests of the lifecycle whose commits call it.
func NewDispatcher(
	lifecycle func(orchestrator.TaskServer) *orchestrator.Lifecycle, hex orchestrator.Hex, feed port.AnswerFeed, models inferences.Catalog,
	artifacts inferences.TranscriptStore, engines balance.Engines, record series.Recorder, cfg inferences.DispatcherConfig, config orchestrator.Config,
) (*inferences.Dispatcher, *orchestrator.Requests) {
	var requests *orchestrator.Requests
	d := inferences.NewDispatcher(func(d *inferences.Dispatcher) (inferences.Runs, inferences.Store) {
		requests = orchestrator.NewRequests(lifecycle(d), hex, orchestrator.StreamsIn(feed), config)
		runs := orchestrator.NewCreations(requests)
		return runs, runs.Store()
	}, hex, feed, models, artifacts, engines, record, cfg, taskConfig(config))
	return d, requests
}

// TasksOnly returns the lifecycle of a dispatcher with use cases of its own, whose commits leave
// everything but inference tasks to a sweep.
func TasksOnly(records *orchestrator.Records, config orchestrator.Config) func(orchestrator.TaskServer) *orchestrator.Lifecycle {
	leave := orchestrator.LeaveToSweep{}
	return func(tasks orchestrator.TaskServer) *orchestrator.Lifecycle {
		return orchestrator.NewLifecycle(records, orchestrator.NoExecutions{}, leave, leave, tasks, config)
	}
}

// taskConfig returns the part of a configuration that is about inference tasks.
func taskConfig(c orchestrator.Config) inferences.Config {
	return inferences.Config{Policy: c.Policy, Budgets: c.Budgets, MostWithin: c.MostWithin}
}

// Definitions returns the use cases that run definitions; see jobs.NewDefinitions.
func Definitions(runs *orchestrator.Runs, c orchestrator.Config) *jobs.Definitions {
	creations := orchestrator.NewJobRuns(runs)
	return jobs.NewDefinitions(creations, creations.Store(), jobs.Config{
		Policy: c.Policy, Host: c.Host, Hooks: c.Hooks, CheckPodSpec: c.CheckPodSpec, CheckImage: c.CheckImage,
		NoBucketKeys: c.BucketCredentials == run.BucketEnvelope,
	})
}

// Warm returns the warm machines of the pools of a lifecycle.
func Warm(life *orchestrator.Lifecycle, runner port.Runner, hex orchestrator.Hex, c orchestrator.Config) *warm.Machines {
	runs := orchestrator.NewCommits(life)
	return warm.New(runs, runs.Store(), runner, hex, warm.Config{Policy: c.Policy, Key: c.WarmKey, Workers: c.SweepWorkers})
}

// Downloads returns the downloads of the outputs of runs.
func Downloads(records *orchestrator.Records, objects port.Outputs, c orchestrator.Config) *downloads.Downloads {
	return downloads.New(orchestrator.NewOutputRuns(orchestrator.NewOutputs(records, objects)), objects, downloads.Config{
		RedirectOver: c.RedirectOver, PresignFor: c.PresignFor, Retention: c.DownloadRetention,
	})
}

// poolConfig returns the part of a configuration that is about pools.
func poolConfig(c orchestrator.Config) pools.Config {
	return pools.Config{
		Policy: c.Policy, Host: c.Host, Runners: c.Runners, CheckPodDefaults: c.CheckPodDefaults,
		Engines: c.Engines, MockEngine: c.MockEngine, FreePort: c.FreePort, Loopback: c.Loopback,
	}
}
