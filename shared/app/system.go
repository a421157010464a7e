// Package app connects the use cases of shared/app/runs and of the rooms of shared/app for a
// process that serves all of them. Deployed functions connect only what they need, in their
// bootstrap; wire.go connects single rooms for them.
package app

import (
	"log/slog"

	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/app/budgets"
	"github.com/sortie-dev/sortie/shared/app/children"
	"github.com/sortie-dev/sortie/shared/app/downloads"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/prompts"
	"github.com/sortie-dev/sortie/shared/app/reception"
	"github.com/sortie-dev/sortie/shared/app/redelivery"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// System has every use case but Relay, for a process that serves all of them.
type System struct {
	*runs.Requests
	*runs.Runs
	*runs.Firing
	*runs.Queries
	*downloads.Downloads
	*runs.Workers
	*runs.Admission
	*runs.Conditions
	*runs.Actions
	*runs.Launches
	*runs.Supervision
	*runs.Termination
	*runs.Sweeper
	*jobs.Definitions
	// Logs has the logs of attempts, Intake takes the output of workers while they run.
	Logs         *logs.Archive
	Intake       *logs.Intake
	Jobs         *jobs.Jobs
	Explanations *jobs.Explanations
	Children     *children.Reader
	Redeliveries *redelivery.Redeliveries
	Pools        *pools.Pools
	Reports      *runs.MachineReports
	Artifacts    *artifacts.Registry
	Models       *artifacts.Models
	Budgets      *budgets.Accounts
	// Inference and Dispatcher are as in SystemTasks; nil for a process without them.
	Inference  *inferences.Inference
	Dispatcher *inferences.Dispatcher
}

// SystemTasks says how a System serves inference tasks: by ServeTasks, CallTasks or NoTasks.
type SystemTasks struct {
	feed    port.AnswerFeed
	engines balance.Engines
	cfg     inferences.DispatcherConfig
	call    inferences.CallDispatcher
}

// ServeTasks makes a System serve the tasks, with a Dispatcher. Their streams are in feed.
func ServeTasks(feed port.AnswerFeed, engines balance.Engines, cfg inferences.DispatcherConfig) SystemTasks {
	return SystemTasks{feed: feed, engines: engines, cfg: cfg}
}

// CallTasks makes a System accept tasks, and call other processes that serve them.
func CallTasks(feed port.AnswerFeed, call inferences.CallDispatcher) SystemTasks {
	return SystemTasks{feed: feed, call: call}
}

// NoTasks is for a System that accepts no inference tasks.
func NoTasks() SystemTasks { return SystemTasks{} }

// NewSystem wires every use case. Each commit is given to the observers. record gets the samples
// that do not follow from commits.
func NewSystem(
	store port.Store, executions port.Executions, schedules port.Schedules, runner port.Runner, outputs port.Outputs, signer port.Signer,
	c clock.Clock, log *slog.Logger, random runs.Random, canary reception.Canary, bucket grants.BucketSource, secrets port.Secrets, hooks runs.Hooks,
	environment runs.Environment, documents runs.Documents, tasks SystemTasks, record series.Recorder, config runs.Config, observers ...port.Observer,
) *System {
	records := runs.NewRecords(store, c, log, observers...)
	s := &System{
		Artifacts: artifacts.NewRegistry(store, outputs, c, log, random.Hex, config.Policy.RecordRetention, config.ArtifactLimit),
		Models:    artifacts.NewModels(store, c, log, documents.Model, config.ModelKeys),
	}
	large := prompts.New(store, outputs, c)
	life, health := s.wireTasks(func(service runs.TaskServer) *runs.Lifecycle {
		return runs.NewLifecycle(records, executions, runs.ActForJobs(hooks, random.Hex, Children), KeepReplicas(runner, random.Hex, config), service, config)
	}, random.Hex, log, large, tasks, record, config)
	records = life.Records
	machines := runs.NewMachines(life, runner)
	tokens := grants.NewTokens(signer, c, random.Hex)
	objects := runs.NewOutputs(records, outputs)
	readers := runs.NewTasks(records)
	s.Logs = logs.New(readers, runner, outputs, grants.NewWorkerSecrets(bucket, secrets), c)
	prober := runs.NewReception(records, tokens, canary, config)
	s.Runs = runs.NewRuns(s.Requests, outputs)
	s.Definitions = Definitions(s.Runs, config)
	s.Firing = runs.NewFiring(life, schedules)
	s.Jobs = jobs.New(s.Definitions, s.Firing, documents.Job)
	s.Explanations = jobs.NewExplanations(s.Definitions)
	s.Children = ChildReader(records)
	s.Redeliveries = Redeliveries(s.Requests)
	s.Pools = Pools(life, documents.Pool, health, record, config)
	s.Reports = runs.NewMachineReports(machines)
	s.Budgets = budgets.NewAccounts(store, life, c, documents.Budget, config.Budgets)
	s.Queries = runs.NewQueries(records)
	s.Downloads = Downloads(records, outputs, config)
	s.Workers = runs.NewWorkers(life, tokens, outputs, config)
	s.Intake = logs.NewIntake(s.Workers, readers, store, outputs, documents.Log, c)
	s.Admission = runs.NewAdmission(life)
	s.Conditions = runs.NewConditions(life, hooks)
	s.Actions = runs.NewActions(s.Requests, hooks)
	s.Launches = runs.NewLaunches(machines, tokens, objects, bucket, secrets, environment, random.Float64, config)
	s.Supervision = runs.NewSupervision(machines, prober)
	s.Termination = runs.NewTermination(machines, objects, s.Logs, hooks, random.Float64, config)
	s.Sweeper = runs.NewSweeper(machines, objects, large.Beside(s.Artifacts), s.Firing, prober, tasks.expired(), Drains(life, config), Warm(life, runner, random.Hex, config), config)
	return s
}

// wireTasks creates Requests and the use cases of inference tasks with a new lifecycle.
func (s *System) wireTasks(
	lifecycle func(runs.TaskServer) *runs.Lifecycle, hex runs.Hex, log *slog.Logger, prompts *prompts.Store, tasks SystemTasks, record series.Recorder, config runs.Config,
) (life *runs.Lifecycle, health pools.EngineHealths) {
	switch {
	case tasks.engines != nil:
		s.Dispatcher, s.Requests = NewDispatcher(lifecycle, hex, tasks.feed, s.Models, s.Artifacts, prompts, tasks.engines, record, tasks.cfg, config)
		s.Inference, health = s.Dispatcher.Inference, s.Dispatcher
	case tasks.call != nil:
		life := lifecycle(inferences.NewCalls(tasks.call, log))
		s.Requests, health = runs.NewRequests(life, hex, runs.StreamsIn(tasks.feed), config), pools.NoEngines{}
		s.Inference = NewInference(s.Requests, hex, tasks.feed, s.Models, s.Artifacts, prompts, record, config)
	default:
		s.Requests, health = runs.NewRequests(lifecycle(runs.LeaveToSweep{}), hex, runs.LeaveToSweep{}, config), pools.NoEngines{}
	}
	return s.Requests.Lifecycle, health
}

// expired makes the System trim the streams, if the feed is one that does not expire by itself.
func (t SystemTasks) expired() runs.ExpiredStreams {
	if feed, ok := t.feed.(port.Feed); ok {
		return runs.TrimStreams(feed)
	}
	return runs.LeaveToDatabase{}
}
