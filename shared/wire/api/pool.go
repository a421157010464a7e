package api

import (
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// PoolDefinition converts the definition of the pool with an id. Its Faults list the problems of the
// request.
func PoolDefinition(id string, body contract.PoolDefinition) (d pools.Definition) {
	switch e := body.Engine; {
	case e != nil:
		place := enginePlace(*e)
		d.Engine, d.Limit = &place, place.Limit()
		if body.Limit != nil && *body.Limit != d.Limit {
			d.Faults = append(d.Faults, fault.Invalid("limit", "%d is not the limit of an engine, want no limit: it is the sum of the slots of the replicas", *body.Limit))
		}
	case body.From != nil:
		d.Origin = &platform.Origin{Tenant: body.From.Tenant, Pool: body.From.Pool}
		if body.Limit != nil {
			d.Limit = *body.Limit
		}
	case body.Limit == nil:
		d.Faults = append(d.Faults, fault.Invalid("limit", "missing limit, want the number of slots, or 0 for no limit"))
	default:
		d.Limit = *body.Limit
	}
	d.Sharing, d.QueueLimit = poolSharing(id, body.Sharing), body.QueueLimit
	var wrong []*fault.Fault
	d.Placement, wrong = placement(body.Runner, body.Settings)
	d.Faults = append(d.Faults, wrong...)
	for i, f := range body.Fallback {
		next := platform.Fallback{Pool: f.Pool}
		for _, reason := range f.On {
			next.On = append(next.On, platform.FallbackReason(reason))
		}
		if s := f.ThrottledSeconds; s != nil {
			var bad *fault.Fault
			if next.ThrottledFor, bad = runs.ThrottledFor("fallback."+strconv.Itoa(i)+".throttledSeconds", *s); bad != nil {
				d.Faults = append(d.Faults, bad)
				next.ThrottledFor = time.Second // replaces the invalid value
			}
		}
		d.Fallbacks = append(d.Fallbacks, next)
	}
	if w := body.Warm; w != nil {
		seconds := func(n int) time.Duration {
			return time.Duration(min(max(n, -1), 1e9)) * time.Second
		}
		d.Warm = &platform.Warm{
			Min: w.Min, Max: w.Max, Ahead: seconds(w.AheadSeconds), MaxAge: seconds(w.MaxAgeSeconds),
			Image: w.Image, CPUs: w.CPUs, MemoryMB: w.MemoryMB, After: platform.WarmAfter(w.After),
		}
	}
	return d
}

// enginePlace converts the engine of a pool.
func enginePlace(e contract.PoolEngine) platform.EnginePlace {
	place := platform.EnginePlace{Kind: platform.EngineKind(e.Kind), Model: e.Model, EngineModel: e.EngineModel, SecretRef: e.SecretRef, Slots: 1, Deterministic: e.Deterministic}
	switch {
	case e.Slots != nil:
		place.Slots = *e.Slots
	case !e.Deterministic:
		place.Slots, place.AutoSlots = place.Kind.DefaultSlots(), true
	}
	place.DeadlineMS, place.LongestDeadlineMS = milliseconds(e.DeadlineMS), milliseconds(e.MaxDeadlineMS)
	for _, r := range e.Replicas {
		place.Replicas = append(place.Replicas, platform.EngineReplica{ID: r.ID, URL: r.URL, MetricsURL: r.MetricsURL})
	}
	if m := e.Machines; m != nil {
		place.Machines = &platform.EngineMachines{Job: m.Job, Count: m.Count, Port: platform.DefaultReplicaPort}
		if m.Port != nil {
			place.Machines.Port = *m.Port
		}
	}
	return place.WithIDs()
}

// milliseconds returns the value of a field; 0 if it is absent, and -1, which is out of range,
// for 0.
func milliseconds(field *int64) int64 {
	switch {
	case field == nil:
		return 0
	case *field == 0:
		return -1
	}
	return *field
}

// poolEngine returns the wire form of a pool's engine; nil for a pool of a runner.
func poolEngine(e *platform.EnginePlace) *contract.PoolEngine {
	if e == nil {
		return nil
	}
	found := contract.PoolEngine{Kind: string(e.Kind), Model: e.Model, EngineModel: e.EngineModel, SecretRef: e.SecretRef, Slots: &e.Slots, Deterministic: e.Deterministic}
	if e.DeadlineMS != 0 {
		found.DeadlineMS = &e.DeadlineMS
	}
	if e.LongestDeadlineMS != 0 {
		found.MaxDeadlineMS = &e.LongestDeadlineMS
	}
	for _, r := range e.Replicas {
		found.Replicas = append(found.Replicas, contract.PoolReplica{ID: r.ID, URL: r.URL, MetricsURL: r.MetricsURL})
	}
	if m := e.Machines; m != nil {
		found.Machines = &contract.PoolMachines{Job: m.Job, Count: m.Count, Port: &m.Port}
	}
	return &found
}

// poolWarm returns the wire form of the settings of warm machines; nil without settings.
func poolWarm(w *platform.Warm) *contract.PoolWarm {
	if w == nil {
		return nil
	}
	return &contract.PoolWarm{
		Min: w.Min, Max: w.Max, AheadSeconds: int(w.Ahead / time.Second), MaxAgeSeconds: int(w.MaxAge / time.Second),
		Image: w.Image, CPUs: w.CPUs, MemoryMB: w.MemoryMB, After: string(w.After),
	}
}

// poolFallback returns the wire form of fallbacks.
func poolFallback(fallbacks []platform.Fallback) (found []contract.PoolFallback) {
	for _, f := range fallbacks {
		next := contract.PoolFallback{Pool: f.Pool}
		for _, reason := range f.On {
			next.On = append(next.On, string(reason))
		}
		if f.ThrottledFor > 0 {
			next.ThrottledSeconds = new(int(f.ThrottledFor / time.Second))
		}
		found = append(found, next)
	}
	return found
}

func detour(r run.Run) []run.DetourStep {
	if r.Detour == nil {
		return nil
	}
	return r.Detour.Steps
}

// fellBack returns the wire form of the fallbacks that a run has taken.
func fellBack(steps []run.DetourStep) (taken []contract.FellBack) {
	for _, s := range steps {
		taken = append(taken, contract.FellBack{Attempt: s.Attempt, From: s.From, To: s.To, Reason: string(s.Reason), Message: s.Message, At: s.At})
	}
	return taken
}

// placement converts the placement of a pool. Settings of another runner are faults.
func placement(runner string, s *contract.PoolSettings) (where platform.Placement, wrong []*fault.Fault) {
	where.Runner = runner
	if s == nil {
		return where, nil
	}
	if runner == "" {
		return where, []*fault.Fault{fault.Invalid("settings", "settings without a runner, want the field runner too")}
	}
	given := reflect.ValueOf(*s)
	for _, other := range platform.Runners() {
		settings := platform.NewSettings(other)
		if other == runner {
			where.Settings = settings
		}
		for field, value := range members(settings) {
			if from := given.FieldByName(field.Name); other == runner {
				value.Set(from)
			} else if !from.IsZero() && slices.Contains(platform.Runners(), runner) {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				wrong = append(wrong, fault.Invalid("settings."+name, "a setting of the runner %s, want none with the runner %s", other, runner))
			}
		}
	}
	return where, wrong
}

// members returns the fields of the settings of a runner. contract.PoolSettings has a field of
// the same name for each.
func members(s platform.Settings) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		if s == nil {
			return
		}
		for field, value := range reflect.ValueOf(s).Elem().Fields() {
			if !yield(field, value) {
				return
			}
		}
	}
}

// poolSettings returns the wire form of the settings of a placement; nil without settings.
func poolSettings(where platform.Placement) *contract.PoolSettings {
	if where.Settings == nil {
		return nil
	}
	var shown contract.PoolSettings
	for field, value := range members(where.Settings) {
		reflect.ValueOf(&shown).Elem().FieldByName(field.Name).Set(value)
	}
	return &shown
}

// Pool returns the response for a pool.
func Pool(v pools.View) contract.Pool {
	return contract.Pool{
		ID: v.ID, Runner: v.Placement.Runner, Settings: poolSettings(v.Placement), Fallback: poolFallback(v.Fallbacks), Warm: poolWarm(v.Warm), Engine: poolEngine(v.Engine), Sharing: sharedPool(v.Sharing), From: poolFrom(v), Limit: v.Limit, QueueLimit: v.QueueLimit, Draining: v.Draining, DrainBy: v.DrainBy, Held: v.Held, Queued: v.Queued,
		Version: v.Version, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, UpdatedBy: v.UpdatedBy,
	}
}

// PoolHealth returns the response for the health of a pool.
func PoolHealth(h pools.Health) contract.PoolHealth {
	found := contract.PoolHealth{
		Live: true, Ready: !h.Draining, Draining: h.Draining, Held: h.Held, Queued: h.Queued, Machines: h.Machines,
		Metrics: contract.PoolMetrics{Limit: h.Limit, QueueLimit: h.QueueLimit, LongestWaitSeconds: seconds(h.LongestWait), StartingMachines: h.Starting, MeasuredStarts: h.Starts, NextStartAt: h.NextStart},
		WarmMachines: contract.WarmCounts{
			Creating: h.Warm[platform.WarmCreating] + h.Warm[platform.WarmRecycling], Ready: h.Warm[platform.WarmReady], Claimed: h.Warm[platform.WarmClaimed], Ending: h.Warm[platform.WarmEnding],
		},
		MachineStates: contract.MachineCounts{Starting: h.Starting, Running: h.Running, Ending: h.Ending},
		Remaining:     make([]contract.Holder, 0, len(h.Remaining)), Errors: make([]contract.PoolErrorGroup, 0, len(h.Errors)),
	}
	if h.DrainPhase != "" {
		found.Drain = &contract.PoolDrainState{Phase: string(h.DrainPhase), Deadline: h.DrainBy, Runs: h.Left}
		for _, n := range h.Warm {
			found.Drain.WarmMachines += n
		}
	}
	found.Metrics.RecentStartsPerSecond = h.RecentRate
	if e := h.Expected; e != nil {
		found.Metrics.ExpectedWait = &contract.PoolWait{
			P50Seconds: seconds(max(e.P50.Sub(h.At), 0)), P90Seconds: seconds(max(e.P90.Sub(h.At), 0)), Measured: e.Measured,
		}
	}
	for _, g := range h.Errors {
		found.Errors = append(found.Errors, contract.PoolErrorGroup{Code: string(g.Code), Message: g.Message, Count: g.Count, FirstAt: g.FirstAt, LastAt: g.LastAt})
	}
	if h.Starts > 0 {
		found.Metrics.StartP50Seconds, found.Metrics.StartP99Seconds = new(seconds(h.StartP50)), new(seconds(h.StartP99))
	}
	if h.StartRate > 0 {
		found.Metrics.StartsPerSecond = &h.StartRate
	}
	for _, r := range h.Replicas {
		found.Replicas = append(found.Replicas, contract.ReplicaHealth{
			ID: r.ID, Live: r.Live, Ready: r.Ready, Reason: limit.Cut(r.Reason, limit.Message), Held: r.Held, EngineVersion: r.Version, Machine: replicaMachine(r.Machine),
		})
	}
	if len(h.Replicas) > 0 {
		found.Ready = found.Ready && slices.ContainsFunc(h.Replicas, func(r balance.ReplicaHealth) bool { return r.Ready })
	}
	for _, r := range h.Remaining {
		found.Remaining = append(found.Remaining, contract.Holder{
			RunID: r.ID, TaskID: r.TaskID, JobID: r.JobID, State: string(r.State), Since: r.Slot.Since, Cancelling: r.EndRequest() != nil,
		})
	}
	for i, r := range h.Waiting {
		found.Waiting = append(found.Waiting, Task(runs.View{Run: r, QueuePosition: i, At: h.At}))
	}
	if h.LastError != nil {
		found.LastError = &contract.PoolError{Code: string(h.LastError.Code), Message: h.LastError.Message}
	}
	return found
}

// Capabilities returns the response for the capabilities of engines.
func Capabilities(engines []pools.Capability) contract.Capabilities {
	found := contract.Capabilities{APIVersion: contract.APIVersion, Engines: make([]contract.EngineCapability, len(engines))}
	for i, e := range engines {
		found.Engines[i] = contract.EngineCapability{
			Engine: string(e.Engine), CtxMax: e.ContextTokens, Concurrency: e.Concurrency, Models: e.Models, Pools: e.Pools,
			Features: featuresOf(e),
		}
		for _, w := range e.Workloads {
			found.Engines[i].SupportedWorkloads = append(found.Engines[i].SupportedWorkloads, string(w))
		}
	}
	return found
}

// replicaMachine returns the wire form of a replica that Sortie runs; nil for nil.
func replicaMachine(r *fleet.Replica) *contract.ReplicaMachine {
	if r == nil {
		return nil
	}
	m := contract.ReplicaMachine{
		State: string(r.Phase), Since: r.Since, RunID: r.Run, TaskID: r.TaskID, URL: r.URL, Model: r.Model,
		Failures: r.Failures, RetryAt: r.RetryAt, LastRunID: r.LastRun,
	}
	if r.Fault != nil {
		m.LastError = &contract.PoolError{Code: string(r.Fault.Code), Message: limit.Cut(r.Fault.Message, limit.Message)}
	}
	return &m
}
