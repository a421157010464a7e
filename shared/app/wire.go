package app

import (
	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/app/children"
	"github.com/sortie-dev/sortie/shared/app/downloads"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/items"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/redelivery"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/sensors"
	"github.com/sortie-dev/sortie/shared/app/warm"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// KeepReplicas returns the ReplicaRuns of a process that starts and ends the runs of replicas
// itself, after each commit that concerns one and in its sweeps. runner returns the addresses of
// machines, and hex random bytes in hexadecimal. The other choice is runs.LeaveToSweep.
func KeepReplicas(runner port.Runner, hex runs.Hex, config runs.Config) runs.ReplicaRuns {
	return runs.KeepReplicas(hex, func(runs runs.Creations) runs.ReplicaKeeper {
		c, log, known := runs.Parts()
		return pools.NewKeeper(runs, runs.Store(), c, log, known, runner, poolConfig(config))
	})
}

// Children returns the children of runs of a process that creates runs.
func Children(c runs.Creations, config runs.Config) runs.Children {
	now, log, _ := c.Parts()
	return children.New(c, c.Store(), items.New(c.Store(), now), now, log, config.SweepWorkers)
}

// ChildReader returns the Reader of the children of runs.
func ChildReader(records *runs.Records) *children.Reader {
	found := runs.NewTasks(records)
	store, now := found.Reads()
	return children.NewReader(found, store, items.New(store, now), now)
}

// Redeliveries returns the redeliveries of the notifications of runs.
func Redeliveries(requests *runs.Requests) *redelivery.Redeliveries {
	return redelivery.New(runs.NewCreations(requests))
}

// Drains returns the drains of the pools of a lifecycle.
func Drains(life *runs.Lifecycle, config runs.Config) *pools.Drains {
	runs := runs.NewCommits(life)
	c, log, known := runs.Parts()
	return pools.NewDrains(runs, runs.Store(), c, log, known, poolConfig(config))
}

// Pools returns the use cases of the pools of a lifecycle; see pools.New.
func Pools(
	life *runs.Lifecycle, document func(platform.Pool) ([]byte, error), health pools.EngineHealths, record series.Recorder, config runs.Config,
) *pools.Pools {
	return pools.New(Drains(life, config), document, health, record)
}

// NewInference returns the use cases for clients of inference tasks in a process without a
// dispatcher; see inferences.New.
func NewInference(
	requests *runs.Requests, hex runs.Hex, feed port.AnswerFeed, models inferences.Catalog, transcripts inferences.Transcripts, prompts inferences.Prompts,
	record series.Recorder, config runs.Config,
) *inferences.Inference {
	runs := runs.NewCreations(requests)
	return inferences.New(runs, runs.Store(), hex, feed, models, transcripts, prompts, record, taskConfig(config))
}

// NewDispatcher returns a dispatcher, and the requests of the lifecycle whose commits call it.
func NewDispatcher(
	lifecycle func(runs.TaskServer) *runs.Lifecycle, hex runs.Hex, feed port.AnswerFeed, models inferences.Catalog,
	artifacts inferences.TranscriptStore, prompts inferences.Prompts, engines balance.Engines, record series.Recorder, cfg inferences.DispatcherConfig, config runs.Config,
) (*inferences.Dispatcher, *runs.Requests) {
	var requests *runs.Requests
	d := inferences.NewDispatcher(func(d *inferences.Dispatcher) (inferences.Runs, inferences.Store) {
		requests = runs.NewRequests(lifecycle(d), hex, runs.StreamsIn(feed), config)
		runs := runs.NewCreations(requests)
		return runs, runs.Store()
	}, hex, feed, models, artifacts, prompts, engines, record, cfg, taskConfig(config))
	return d, requests
}

// TasksOnly returns the lifecycle of a dispatcher with use cases of its own, whose commits leave
// everything but inference tasks to a sweep.
func TasksOnly(records *runs.Records, config runs.Config) func(runs.TaskServer) *runs.Lifecycle {
	leave := runs.LeaveToSweep{}
	return func(tasks runs.TaskServer) *runs.Lifecycle {
		return runs.NewLifecycle(records, runs.NoExecutions{}, leave, leave, tasks, config)
	}
}

// taskConfig returns the part of a configuration that is about inference tasks.
func taskConfig(c runs.Config) inferences.Config {
	return inferences.Config{Policy: c.Policy, Budgets: c.Budgets, Answers: c.Answers, MostWithin: c.MostWithin}
}

// Definitions returns the use cases that run definitions; see jobs.NewDefinitions.
func Definitions(all *runs.Runs, c runs.Config) *jobs.Definitions {
	creations := runs.NewJobRuns(all)
	return jobs.NewDefinitions(creations, creations.Store(), jobs.Config{
		Policy: c.Policy, Host: c.Host, Hooks: c.Hooks, CheckPodSpec: c.CheckPodSpec, CheckImage: c.CheckImage, HasSecret: c.HasSecret,
		NoBucketKeys: c.BucketCredentials == spec.BucketEnvelope,
	})
}

// ItemSources are the adapters of polled sensors.
type ItemSources interface {
	port.Buckets
	port.Queues
}

// Polls returns the polls of the sensors of jobs.
func Polls(all *runs.Runs, secrets port.Secrets, sources ItemSources, c runs.Config) *sensors.Polls {
	commits := runs.NewCommits(all.Lifecycle)
	now, log, _ := commits.Parts()
	return sensors.NewPolls(commits.Store(), Definitions(all, c), secrets, sources, sources, now, log, c.SweepWorkers)
}

// Warm returns the warm machines of the pools of a lifecycle.
func Warm(life *runs.Lifecycle, runner port.Runner, hex runs.Hex, c runs.Config) *warm.Machines {
	commits := runs.NewCommits(life)
	return warm.New(commits, commits.Store(), runner, hex, warm.Config{Policy: c.Policy, Key: c.WarmKey, Workers: c.SweepWorkers})
}

// Downloads returns the downloads of the outputs of runs.
func Downloads(records *runs.Records, objects port.Outputs, c runs.Config) *downloads.Downloads {
	return downloads.New(runs.NewOutputRuns(runs.NewOutputs(records, objects)), objects, downloads.Config{
		RedirectOver: c.RedirectOver, PresignFor: c.PresignFor, Retention: c.DownloadRetention,
	})
}

// poolConfig returns the part of a configuration that is about pools.
func poolConfig(c runs.Config) pools.Config {
	return pools.Config{
		Policy: c.Policy, Host: c.Host, Runners: c.Runners, CheckPodDefaults: c.CheckPodDefaults,
		Engines: c.Engines, MockEngine: c.MockEngine, FreePort: c.FreePort, Loopback: c.Loopback,
	}
}
