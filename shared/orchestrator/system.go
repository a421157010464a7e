package orchestrator

import (
	"log/slog"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
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
}

// Random is the source of random numbers and ids.
type Random interface {
	// Float64 implements Rand, Hex the function type Hex.
	Float64() float64
	Hex(n int) string
}

// NewSystem wires every use case. Each commit is given to the observers.
func NewSystem(
	store port.Store, executions port.Executions, schedules port.Schedules, runner port.Runner, outputs port.Outputs, signer port.Signer,
	c clock.Clock, log *slog.Logger, random Random, canary Canary, bucket BucketSource,
	secrets port.Secrets, hooks Hooks, environment Environment, documents Documents, config Config, observers ...port.Observer,
) *System {
	records := NewRecords(store, c, log, observers...)
	life := NewLifecycle(records, executions, config)
	machines := NewMachines(life, runner)
	tokens := NewTokens(signer, c, random.Hex)
	objects := NewOutputs(records, outputs)
	logs := NewLogs(records, runner, outputs, bucket, secrets)
	reception := NewReception(records, tokens, canary, config)
	requests := NewRequests(life, random.Hex, config)
	runs := NewRuns(requests, outputs)
	definitions := NewDefinitions(runs, config)
	firing := NewFiring(life, schedules)
	artifacts := NewArtifacts(records, outputs, random.Hex, config)
	KeepReplicas(requests, runner, config)
	return &System{
		Requests:     requests,
		Runs:         runs,
		Definitions:  definitions,
		Jobs:         NewJobs(definitions, firing, documents.Job),
		Explanations: NewExplanations(definitions),
		Pools:        NewPools(life, documents.Pool, config),
		Reports:      NewMachineReports(machines),
		Artifacts:    artifacts,
		Models:       NewModels(records, documents.Model, config),
		Budgets:      NewBudgets(life, documents.Budget, config),
		Firing:       firing,
		Queries:      NewQueries(records),
		Downloads:    NewDownloads(objects, config),
		Logs:         logs,
		Workers:      NewWorkers(life, tokens, outputs, documents.Log, config),
		Admission:    NewAdmission(life),
		Conditions:   NewConditions(life, hooks),
		Actions:      NewActions(life, hooks, requests.Triggered),
		Launches:     NewLaunches(machines, tokens, objects, bucket, secrets, environment, random.Float64, config),
		Supervision:  NewSupervision(machines, reception),
		Termination:  NewTermination(machines, objects, logs, hooks, random.Float64, config),
		Sweeper:      NewSweeper(machines, objects, artifacts, firing, reception, random.Hex, config),
	}
}
