package orchestrator

import (
	"log/slog"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/series"
)

// System has every use case but Relay, for a process that serves all of them.
type System struct {
	*Requests
	*Runs
	*Firing
	*Queries
	*Downloads
	*Logs
	*Workers
	*Admission
	*Conditions
	*Actions
	*Launches
	*Supervision
	*Termination
	*Sweeper
	*Definitions
	Jobs         *Jobs
	Explanations *Explanations
	Pools        *Pools
	Reports      *MachineReports
	Artifacts    *Artifacts
	Models       *Models
	Budgets      *Budgets
	// Inference and Dispatcher are as in SystemTasks; nil for a process without them.
	Inference  *Inference
	Dispatcher *Dispatcher
}

// SystemTasks says how a System serves inference tasks: by ServeTasks, CallTasks or NoTasks.
type SystemTasks struct {
	feed    port.AnswerFeed
	engines Engines
	cfg     DispatcherConfig
	call    CallDispatcher
}

// ServeTasks makes a System serve the tasks, with a Dispatcher. Their streams are in feed.
func ServeTasks(feed port.AnswerFeed, engines Engines, cfg DispatcherConfig) SystemTasks {
	return SystemTasks{feed: feed, engines: engines, cfg: cfg}
}

// CallTasks makes a System accept tasks, and call other processes that serve them.
func CallTasks(feed port.AnswerFeed, call CallDispatcher) SystemTasks {
	return SystemTasks{feed: feed, call: call}
}

// NoTasks is for a System that accepts no inference tasks.
func NoTasks() SystemTasks { return SystemTasks{} }

// Random is the source of random numbers and ids.
type Random interface {
	// Float64 implements Rand, Hex the function type Hex.
	Float64() float64
	Hex(n int) string
}

// NewSystem wires every use case. Each commit is given to the observers. record gets the samples
// that do not follow from commits.
func NewSystem(
	store port.Store, executions port.Executions, schedules port.Schedules, runner port.Runner, outputs port.Outputs, signer port.Signer,
	c clock.Clock, log *slog.Logger, random Random, canary Canary, bucket BucketSource, secrets port.Secrets, hooks Hooks,
	environment Environment, documents Documents, tasks SystemTasks, record series.Recorder, config Config, observers ...port.Observer,
) *System {
	records := NewRecords(store, c, log, observers...)
	s := &System{
		Artifacts: NewArtifacts(records, outputs, random.Hex, config),
		Models:    NewModels(records, documents.Model, config),
	}
	life, health := s.wireTasks(func(service TaskService) *Lifecycle {
		return NewLifecycle(records, executions, ActForJobs(hooks, random.Hex), KeepReplicas(runner, random.Hex), service, config)
	}, random.Hex, tasks, record, config)
	records = life.Records
	machines := NewMachines(life, runner)
	tokens := NewTokens(signer, c, random.Hex)
	objects := NewOutputs(records, outputs)
	s.Logs = NewLogs(records, runner, outputs, bucket, secrets)
	reception := NewReception(records, tokens, canary, config)
	s.Runs = NewRuns(s.Requests, outputs)
	s.Definitions = NewDefinitions(s.Runs, config)
	s.Firing = NewFiring(life, schedules)
	s.Jobs = NewJobs(s.Definitions, s.Firing, documents.Job)
	s.Explanations = NewExplanations(s.Definitions)
	s.Pools = NewPools(life, documents.Pool, health, record, config)
	s.Reports = NewMachineReports(machines)
	s.Budgets = NewBudgets(life, documents.Budget, config)
	s.Queries = NewQueries(records)
	s.Downloads = NewDownloads(objects, config)
	s.Workers = NewWorkers(life, tokens, outputs, documents.Log, config)
	s.Admission = NewAdmission(life)
	s.Conditions = NewConditions(life, hooks)
	s.Actions = NewActions(s.Requests, hooks)
	s.Launches = NewLaunches(machines, tokens, objects, bucket, secrets, environment, random.Float64, config)
	s.Supervision = NewSupervision(machines, reception)
	s.Termination = NewTermination(machines, objects, s.Logs, hooks, random.Float64, config)
	s.Sweeper = NewSweeper(machines, objects, s.Artifacts, s.Firing, reception, tasks.expired(), random.Hex, config)
	return s
}

// wireTasks creates Requests and the use cases of inference tasks with a new lifecycle.
func (s *System) wireTasks(
	lifecycle func(TaskService) *Lifecycle, hex Hex, tasks SystemTasks, record series.Recorder, config Config,
) (life *Lifecycle, health EngineHealths) {
	switch {
	case tasks.engines != nil:
		s.Dispatcher = newDispatcher(lifecycle, hex, tasks.feed, s.Models, s.Artifacts, tasks.engines, record, tasks.cfg, config)
		s.Inference = s.Dispatcher.Inference
		s.Requests, health = s.Inference.Requests, s.Dispatcher
	case tasks.call != nil:
		s.Inference = NewInference(lifecycle(tasks.call), hex, tasks.feed, s.Models, s.Artifacts, record, config)
		s.Requests, health = s.Inference.Requests, NoEngines{}
	default:
		s.Requests, health = NewRequests(lifecycle(LeaveToSweep{}), hex, LeaveToSweep{}, config), NoEngines{}
	}
	return s.Requests.Lifecycle, health
}

// expired makes the System trim the streams, if the feed is one that does not expire by itself.
func (t SystemTasks) expired() ExpiredStreams {
	if feed, ok := t.feed.(port.Feed); ok {
		return TrimStreams(feed)
	}
	return LeaveToDatabase{}
}
