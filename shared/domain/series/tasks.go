package series

import (
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// The names of the metrics of inference tasks. The contract defines them, so they have no
// prefix, and two are in milliseconds.
const (
	TasksEnqueued = "tasks_enqueued_total"
	TasksStarted  = "tasks_started_total"
	TasksCanceled = "tasks_canceled_total"
	TasksRejected = "tasks_rejected_total"
	Backpressure  = "admission_backpressure_events_total"
	Drains        = "drain_events_total"
	SlotsLeaked   = "slot_leaked_total"

	FirstToken = "latency_first_token_ms"
	Decode     = "latency_decode_ms"

	QueueDepth   = "queue_depth"
	ModelState   = "model_state"
	ActiveLeases = "active_leases"
	PoolReady    = "pool_ready"
	KVCache      = "kv_cache_usage_ratio"
	GPU          = "gpu_utilization"
	VRAM         = "vram_used_bytes"
)

// Canceller is the cause of a task's cancellation.
type Canceller string

// The cancellers.
const (
	CancelledByClient Canceller = "client"
	CancelledByDrain  Canceller = "drain"      // the drain of its pool reached its deadline
	CancelledByGone   Canceller = "disconnect" // its caller disconnected
)

// Policy is the reason why a request was refused temporarily.
type Policy string

// The policies.
const (
	PolicyReject Policy = "reject" // the queue of the pool is full
	PolicyBudget Policy = "budget" // a budget is exhausted
)

// drainRequest is the reason of a drain that a client requested. There is no other reason.
const drainRequest = "api_request"

// DrainOf returns the sample of a drain of a pool that a client requested.
func DrainOf(pool string) Sample { return Count(Drains, 1, pool, drainRequest) }

// taskFamilies are the metrics of inference tasks.
func taskFamilies() []Family {
	pool := []string{"engine", "engine_version", "pool_id", "priority"}
	replica := []string{"engine", "engine_version", "pool_id", "replica_id"}
	families := []Family{
		{Name: TasksEnqueued, Help: "Inference tasks that were accepted.", Kind: Counter},
		{Name: TasksStarted, Help: "Attempts of inference tasks that have got a replica.", Kind: Counter},
		{Name: TasksCanceled, Help: "Inference tasks that have ended as cancelled, by what cancelled them.", Kind: Counter, Labels: []string{"reason"}},
		{Name: TasksRejected, Help: "Requests of inference tasks that were refused, by the code of the fault in lower case.", Kind: Counter, Labels: []string{"reason"}},
		{Name: Backpressure, Help: "Requests of inference tasks that were refused for a while.", Kind: Counter, Labels: []string{"policy"}},
		{Name: Drains, Help: "Drains of pools.", Kind: Counter, Labels: []string{"pool_id", "reason"}},
		{Name: SlotsLeaked, Help: "Tasks that have ended while their replica kept the request for longer than it may.", Kind: Counter, Labels: []string{"pool_id"}},
		{Name: FirstToken, Help: "Time from the acceptance of a task to its first token.", Kind: Histogram, Labels: pool},
		{Name: Decode, Help: "Time from the request to a replica to the end of its answer.", Kind: Histogram, Labels: pool},
		{Name: QueueDepth, Help: "Tasks in the queue of a pool. Those behind the first 200 have the priority of the last of these.", Kind: Gauge, Labels: pool},
		{Name: ModelState, Help: "Models of the catalog, by whether they have the state.", Kind: Gauge, Labels: []string{"model_id", "state"}},
		{Name: ActiveLeases, Help: "Slots of a pool of an engine that tasks hold.", Kind: Gauge, Labels: []string{"pool_id"}},
		{Name: PoolReady, Help: "Whether a pool of an engine admits tasks and has a replica that does not rest after failures.", Kind: Gauge, Labels: []string{"pool_id"}},
		{Name: KVCache, Help: "Use of the KV cache of a replica, where its engine reports that.", Kind: Gauge, Labels: replica},
		{Name: GPU, Help: "Use of the GPU of a replica, where its engine reports that.", Kind: Gauge, Labels: replica},
		{Name: VRAM, Help: "Memory of the GPU that a replica uses, where its engine reports that.", Kind: Gauge, Labels: replica},
	}
	for i := range families {
		families[i].OneHost = true
	}
	return families
}

// ofTask adds the samples of an event of an inference task.
func ofTask(r run.Run, e run.Event, ended bool, add func(name string, value float64, labels ...string)) {
	switch {
	case e.Seq == 1:
		add(TasksEnqueued, 1)
	case e.Type == run.EventStarted:
		add(TasksStarted, 1)
	case ended && r.State == run.Cancelled:
		add(TasksCanceled, 1, string(cancellerOf(r)))
	}
	g := r.Generation
	if !ended || g == nil || g.Replica == "" {
		return
	}
	labels := []string{r.Work.Inference.Engine, g.EngineVersion, r.Slot.Pool, string(r.Priority.OrNormal())}
	if !g.FirstTokenAt.IsZero() {
		add(FirstToken, float64(g.FirstTokenAt.Sub(r.CreatedAt).Milliseconds()), labels...)
	}
	add(Decode, float64(g.DecodeMS), slices.Clone(labels)...)
}

func cancellerOf(r run.Run) Canceller {
	switch {
	case r.Cancel != nil && r.Cancel.Reason == run.ReasonDisconnected:
		return CancelledByGone
	case r.Cancel != nil && run.IsDrainReason(r.Cancel.Reason):
		return CancelledByDrain
	}
	return CancelledByClient
}
