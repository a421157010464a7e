package contract

import (
	"encoding/json"
	"time"
)

// PoolDefinition is the body of PUT /v1/pools/{pool_id}.
type PoolDefinition struct {
	// Runner is where the machines of the runs are created: fly, kubernetes, container or
	// process; absent is the runner of the deployment.
	Runner string `json:"runner,omitempty"`
	// Settings are those of Runner; absent members are those of the deployment.
	Settings *PoolSettings `json:"settings,omitempty"`
	// Fallback are the pools of runs whose machines the platform of this pool does not
	// start, in their order.
	Fallback []PoolFallback `json:"fallback,omitempty"`
	// Warm are the settings of the warm machines; absent without any.
	Warm *PoolWarm `json:"warm,omitempty"`
	// Limit is the number of runs that hold a slot at the same time; 0 is no limit. A pool
	// with an Engine needs none: it is the sum of the slots of the replicas.
	Limit *int `json:"limit,omitempty"`
	// QueueLimit is the number of queued runs at which new ones are refused; 0 is no
	// limit, absent the limit of the deployment.
	QueueLimit *int `json:"queueLimit,omitempty"`
	// Engine is where inference tasks run, in place of a runner.
	Engine *PoolEngine `json:"engine,omitempty"`
}

// PoolEngine is the inference server of a pool.
type PoolEngine struct {
	// Kind is llamacpp, vllm, tgi, triton or mock, Model the id of a model of the catalog.
	Kind  string `json:"kind"`
	Model string `json:"model"`
	// Slots is how many tasks each replica generates for at one time; 1 if it is absent.
	Slots *int `json:"slots,omitempty"`
	// Deterministic: each replica has one slot, and a task without a seed has the seed 0.
	Deterministic bool `json:"deterministic,omitempty"`
	// DeadlineMS is the deadline of a task that has none, in milliseconds after its creation;
	// absent for the default of 300000.
	DeadlineMS *int64 `json:"deadlineMs,omitempty"`
	// Replicas are servers at addresses, Machines those that Sortie runs; one of both.
	Replicas []PoolReplica `json:"replicas,omitempty"`
	Machines *PoolMachines `json:"machines,omitempty"`
}

// PoolMachines are the replicas of an engine that Sortie runs: each is a run of a job whose
// program is the server.
type PoolMachines struct {
	// Job is the id of a job, Count the number of replicas.
	Job   string `json:"job"`
	Count int    `json:"count"`
	// Port is where the server listens in its machine; 8080 if it is absent. The program gets
	// its port as ENGINE_PORT; replicas on one host have a port each.
	Port *int `json:"port,omitempty"`
}

// PoolReplica is a server.
type PoolReplica struct {
	// ID is "r" and the number of the replica if it is absent.
	ID  string `json:"id,omitempty"`
	URL string `json:"url,omitempty"`
	// MetricsURL is the address of the metrics, if it is another one.
	MetricsURL string `json:"metricsUrl,omitempty"`
}

// PoolFallback is a further pool.
type PoolFallback struct {
	Pool string `json:"pool"`
	// On are the reasons that use it: capacity, image, throttled.
	On []string `json:"on"`
	// ThrottledSeconds is how long the platform must have throttled the starts of an
	// attempt, for the reason throttled.
	ThrottledSeconds *int `json:"throttledSeconds,omitempty"`
}

// PoolWarm are the settings of the warm machines of a pool: machines that were created and
// stopped before a run needs them.
type PoolWarm struct {
	// Min is the number of machines that are kept for Image and its size, Max the number of
	// all machines that no run has claimed.
	Min int `json:"min,omitempty"`
	Max int `json:"max"`
	// AheadSeconds is how long before each firing a machine is created for it; 0 is never.
	AheadSeconds int `json:"aheadSeconds,omitempty"`
	// MaxAgeSeconds is when an unclaimed machine is replaced, counted from its creation; 0 is
	// a day.
	MaxAgeSeconds int `json:"maxAgeSeconds,omitempty"`
	// After is what follows the run of a machine: destroy or recycle; absent is destroy.
	After string `json:"after,omitempty"`
	// Image, CPUs and MemoryMB are of the machines of Min; absent are those of the deployment.
	Image    string `json:"image,omitempty"`
	CPUs     int    `json:"cpus,omitempty"`
	MemoryMB int    `json:"memoryMb,omitempty"`
}

// PoolSettings are the settings of the runner of a pool.
type PoolSettings struct {
	// Apps and Regions are of the runner fly, in the order of preference.
	Apps    []string `json:"apps,omitempty"`
	Regions []string `json:"regions,omitempty"`
	// Cluster, Namespace, PodDefaults, a pod specification, and Labels, those of the Jobs, are
	// of the runner kubernetes.
	Cluster     string            `json:"cluster,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	PodDefaults json.RawMessage   `json:"podDefaults,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	// Socket and Network are of the runner container.
	Socket  string `json:"socket,omitempty"`
	Network string `json:"network,omitempty"`
}

// PoolDrain is the body of POST /v1/pools/{pool_id}/drain.
type PoolDrain struct {
	// DeadlineSeconds is when the workers of the runs that still hold a slot are asked to
	// end; absent is never.
	DeadlineSeconds *int `json:"deadlineSeconds,omitempty"`
}

// PoolReload is the body of POST /v1/pools/{pool_id}/reload.
type PoolReload struct {
	// Model is a model of the catalog; absent is the present one.
	Model string `json:"model,omitempty"`
	// DeadlineSeconds is how long the request waits for the tasks of the pool, 0 to 25.
	DeadlineSeconds int `json:"deadlineSeconds,omitempty"`
}

// Pool is what GET /v1/pools/{pool_id} returns.
type Pool struct {
	ID string `json:"id"`
	// Runner and Settings are as in PoolDefinition.
	Runner     string         `json:"runner,omitempty"`
	Warm       *PoolWarm      `json:"warm,omitempty"`
	Fallback   []PoolFallback `json:"fallback,omitempty"`
	Settings   *PoolSettings  `json:"settings,omitempty"`
	Engine     *PoolEngine    `json:"engine,omitempty"`
	Limit      int            `json:"limit"`
	QueueLimit int            `json:"queueLimit"`
	// Draining: no run gets a slot. DrainBy is when the workers of the remaining runs are
	// asked to end.
	Draining bool      `json:"draining"`
	DrainBy  time.Time `json:"drainBy,omitzero"`
	// Held and Queued count the runs with a slot and those in the queue.
	Held   int `json:"held"`
	Queued int `json:"queued"`
	// Version counts the changes, from 1; 0 is the default pool before its first change.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
}

// Capabilities are what GET /v1/capabilities returns. The contract of the control plane has
// snake_case.
type Capabilities struct {
	// APIVersion is that of the OpenAPI document.
	APIVersion string             `json:"api_version"`
	Engines    []EngineCapability `json:"engines"`
}

// EngineCapability is what the pools of an engine can do together.
type EngineCapability struct {
	Engine             string   `json:"engine"`
	CtxMax             int      `json:"ctx_max"`
	SupportedWorkloads []string `json:"supported_workloads"`
	// RateLimits is empty: the limit is the concurrency.
	RateLimits struct{}       `json:"rate_limits"`
	Features   EngineFeatures `json:"features"`
	// Concurrency is how many tasks are generated at one time.
	Concurrency int      `json:"concurrency"`
	Models      []string `json:"models"`
	Pools       []string `json:"pools"`
}

// EngineFeatures are what an engine can do.
type EngineFeatures struct {
	// Deterministic: a pool generates the same tokens for the same seed.
	Deterministic bool `json:"deterministic"`
}

// PoolList has the pools, ordered by id.
type PoolList struct {
	Pools []Pool `json:"pools"`
}

// PoolHealth is what GET /v1/pools/{pool_id}/health returns.
type PoolHealth struct {
	// Live: the pool can be read. Ready: it admits runs, and if it has an engine, a replica
	// takes requests.
	Live     bool `json:"live"`
	Ready    bool `json:"ready"`
	Draining bool `json:"draining"`
	Held     int  `json:"held"`
	Queued   int  `json:"queued"`
	// Machines is the number of machines of the first 100 runs that hold a slot.
	Machines int `json:"machines"`
	// MachineStates counts those by the state of their run.
	MachineStates MachineCounts `json:"machineStates"`
	// WarmMachines counts the warm machines by their state.
	WarmMachines WarmCounts  `json:"warmMachines"`
	Metrics      PoolMetrics `json:"metrics"`
	// Replicas are those of a pool of an engine: servers at addresses, as far as the process asks
	// engines, and those that Sortie runs.
	Replicas []ReplicaHealth `json:"replicas,omitempty"`
	// Remaining are the first 20 runs that hold a slot: what a drain waits for.
	Remaining []Holder `json:"remaining"`
	// Drain is absent if the pool does not drain.
	Drain *PoolDrainState `json:"drain,omitempty"`
	// LastError is the newest failure of an attempt of a run that holds a slot or waits;
	// null without one.
	LastError *PoolError `json:"lastError"`
	// Errors are the last failures of the platform by code and message, at most 10 groups,
	// the newest first. They outlive the runs and the process.
	Errors []PoolErrorGroup `json:"errors"`
}

// PoolDrainState is how far the drain of a pool is.
type PoolDrainState struct {
	// Phase is waiting, ending, stopping or drained.
	Phase string `json:"phase"`
	// Deadline is when the workers are asked to end; absent without one.
	Deadline time.Time `json:"deadline,omitzero"`
	// Runs is the number of runs that hold a slot, WarmMachines that of the warm machines.
	Runs         int `json:"runs"`
	WarmMachines int `json:"warmMachines"`
}

// MachineCounts are machines that start, run, and are being ended.
type MachineCounts struct {
	Starting int `json:"starting"`
	Running  int `json:"running"`
	Ending   int `json:"ending"`
}

// PoolErrorGroup are failures of a platform with the same code and message. Ids, numbers and
// times in a message do not distinguish groups.
type PoolErrorGroup struct {
	Code string `json:"code"`
	// Message is that of the last failure, without what looks like a secret.
	Message string    `json:"message"`
	Count   int       `json:"count"`
	FirstAt time.Time `json:"firstAt"`
	LastAt  time.Time `json:"lastAt"`
}

// PoolWait is an estimated wait.
type PoolWait struct {
	P50Seconds float64 `json:"p50Seconds"`
	P90Seconds float64 `json:"p90Seconds"`
	// Measured is the number of measured runs that it is based on; 0 is a guess.
	Measured int `json:"measured"`
}

// ReplicaHealth is the state of a replica of an engine.
type ReplicaHealth struct {
	ID string `json:"id"`
	// Live: the server answers. Ready: it takes requests, and does not rest after failures.
	Live  bool `json:"live"`
	Ready bool `json:"ready"`
	// Reason is why it is not ready; empty if it is.
	Reason string `json:"reason,omitempty"`
	// Held is how many tasks it has. EngineVersion is absent until a task was there.
	Held          int    `json:"held"`
	EngineVersion string `json:"engineVersion,omitempty"`
	// Machine is absent for a server at an address.
	Machine *ReplicaMachine `json:"machine,omitempty"`
}

// Serves identifies a replica of a pool of an engine.
type Serves struct {
	Pool    string `json:"pool"`
	Replica string `json:"replica"`
}

// ReplicaMachine is a replica that Sortie runs.
type ReplicaMachine struct {
	// State is waiting, starting, serving, draining or ending, since Since.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// RunID and TaskID are its run, URL the address of the server; absent until there is one.
	RunID  string `json:"runId,omitempty"`
	TaskID string `json:"taskId,omitempty"`
	URL    string `json:"url,omitempty"`
	// Model is what the run was started with.
	Model string `json:"model,omitempty"`
	// Failures counts the runs, one after the other, that ended soon. The next one is created
	// at RetryAt.
	Failures int       `json:"failures"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
	// LastError is why the run LastRunID ended; absent if none has ended by itself.
	LastError *PoolError `json:"lastError,omitempty"`
	LastRunID string     `json:"lastRunId,omitempty"`
}

// WarmCounts are the warm machines of a pool: those that are being created or recycled, that
// are ready, that belong to a run, and that are being destroyed.
type WarmCounts struct {
	Creating int `json:"creating"`
	Ready    int `json:"ready"`
	Claimed  int `json:"claimed"`
	Ending   int `json:"ending"`
}

// PoolMetrics are the figures of a pool.
type PoolMetrics struct {
	Limit              int     `json:"limit"`
	QueueLimit         int     `json:"queueLimit"`
	LongestWaitSeconds float64 `json:"longestWaitSeconds"`
	// StartingMachines are those that were not observed running yet.
	StartingMachines int `json:"startingMachines"`
	// MeasuredStarts is the number of starts that the two times describe; they are absent
	// without one.
	MeasuredStarts  int      `json:"measuredStarts"`
	StartP50Seconds *float64 `json:"startP50Seconds,omitempty"`
	StartP99Seconds *float64 `json:"startP99Seconds,omitempty"`
	// StartsPerSecond is how many starts a second the limits of all apps permit now; absent
	// before the first start, and for a platform without a documented limit that has
	// throttled none. NextStartAt is when the next start is permitted, if that is not yet.
	StartsPerSecond *float64  `json:"startsPerSecond,omitempty"`
	NextStartAt     time.Time `json:"nextStartAt,omitzero"`
	// RecentStartsPerSecond is how many starts a second there were in the last minute.
	RecentStartsPerSecond float64 `json:"recentStartsPerSecond"`
	// ExpectedWait is the time until the machine of a run would run that is submitted now
	// with the priority normal, the same estimate as that of a plan. It is absent while the
	// pool drains or its queue is full.
	ExpectedWait *PoolWait `json:"expectedWait,omitempty"`
}

// PoolError is a failure of an attempt.
type PoolError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
