package contract

import (
	"encoding/json"
	"time"
)

// PoolDefinition is the body of PUT /v1/pools/{pool_id}.
type PoolDefinition struct {
	// Runner creates the machines of the runs: fly, kubernetes, container or process. If
	// absent, it is the runner of the deployment.
	Runner string `json:"runner,omitempty"`
	// Settings are the settings of Runner. Absent members are those of the deployment.
	Settings *PoolSettings `json:"settings,omitempty"`
	// Fallback lists the pools for runs whose machines the platform of this pool does not
	// start, in order of preference.
	Fallback []PoolFallback `json:"fallback,omitempty"`
	// Warm are the settings of the warm machines. It is absent without warm machines.
	Warm *PoolWarm `json:"warm,omitempty"`
	// Limit is the maximum number of runs that hold a slot at the same time; 0 is no limit. A
	// pool with an Engine needs no Limit: its limit is the sum of the replicas' slots.
	Limit *int `json:"limit,omitempty"`
	// QueueLimit is the number of queued runs from which new runs are refused; 0 is no limit.
	// If absent, it is the limit of the deployment.
	QueueLimit *int `json:"queueLimit,omitempty"`
	// Engine runs the inference tasks of the pool, in place of a runner.
	Engine *PoolEngine `json:"engine,omitempty"`
	// Sharing offers a pool with an Engine to other tenants. If absent, it is not offered.
	Sharing *PoolSharing `json:"sharing,omitempty"`
	// From is the offered pool of another tenant that runs the inference tasks, in place of an Engine.
	From *PoolFrom `json:"from,omitempty"`
}

// PoolSharing are the offers of a pool.
type PoolSharing struct {
	// Weight is the part of the slots that the owner has while tasks wait; 1 if absent.
	Weight *int `json:"weight,omitempty"`
	// Offers has each guest once.
	Offers []PoolOffer `json:"offers"`
}

// PoolOffer is the offer of a pool to another tenant.
type PoolOffer struct {
	Tenant string `json:"tenant"`
	// Pool is the id of the guest's pool; that of the offered pool if absent.
	Pool string `json:"pool,omitempty"`
	// Slots is the most tasks of the guest at the same time.
	Slots int `json:"slots"`
	// Weight is as in PoolSharing. TokensPerDay is the most tokens of a day in UTC; 0 is no limit.
	Weight       *int  `json:"weight,omitempty"`
	TokensPerDay int64 `json:"tokensPerDay,omitempty"`
}

// PoolFrom is the pool of another tenant. A request has Tenant and Pool; the other members are ignored.
type PoolFrom struct {
	Tenant string `json:"tenant"`
	Pool   string `json:"pool"`
	// Engine and Model are those of the pool, TokensPerDay is the limit of the offer. Withdrawn: the pool
	// is not offered any more.
	Engine       string `json:"engine,omitempty"`
	Model        string `json:"model,omitempty"`
	TokensPerDay int64  `json:"tokensPerDay,omitempty"`
	Withdrawn    bool   `json:"withdrawn,omitempty"`
}

// PoolGuests is the response of GET /v1/pools/{pool_id}/guests.
type PoolGuests struct {
	// Day is in UTC.
	Day    string      `json:"day"`
	Guests []PoolGuest `json:"guests"`
}

// PoolGuest is a guest of a pool, with its use of the pool. Tasks, Tokens, TimeMS and CostNanodollars are of the
// tasks that were admitted on the day.
type PoolGuest struct {
	PoolOffer

	Accepted        bool  `json:"accepted"`
	Held            int   `json:"held"`
	Queued          int   `json:"queued"`
	Tasks           int64 `json:"tasks"`
	Tokens          int64 `json:"tokens"`
	TimeMS          int64 `json:"timeMs"`
	CostNanodollars int64 `json:"costNanodollars"`
}

// PoolEngine is the inference server of a pool.
type PoolEngine struct {
	// Kind is one of the engines. Model is the id of a model in the catalog.
	Kind  string `json:"kind"`
	Model string `json:"model"`
	// EngineModel is the engine's name of the model; that of the catalog if absent. SecretRef is
	// the name of the secret with the key of a service; for the kind openai alone.
	EngineModel string `json:"engineModel,omitempty"`
	SecretRef   string `json:"secretRef,omitempty"`
	// Slots is the number of tasks that each replica runs at the same time. If absent, it is the
	// smallest number that an engine reports.
	Slots *int `json:"slots,omitempty"`
	// Deterministic gives each replica one slot, and a task without a seed the seed 0.
	Deterministic bool `json:"deterministic,omitempty"`
	// DeadlineMS is the default deadline of a task, in milliseconds after its creation; 300000
	// if absent.
	DeadlineMS *int64 `json:"deadlineMs,omitempty"`
	// MaxDeadlineMS is the longest deadline of a task; that of the deployment if absent.
	MaxDeadlineMS *int64 `json:"maxDeadlineMs,omitempty"`
	// Replicas are servers with fixed addresses. Machines are servers that Sortie runs. Exactly
	// one is set.
	Replicas []PoolReplica `json:"replicas,omitempty"`
	Machines *PoolMachines `json:"machines,omitempty"`
}

// PoolMachines are the replicas of an engine that Sortie runs. Each replica is a run of a job
// whose program is the server.
type PoolMachines struct {
	// Job is the id of a job. Count is the number of replicas.
	Job   string `json:"job"`
	Count int    `json:"count"`
	// Port is the port of the server in its machine; 8080 if absent. The program reads its port
	// from ENGINE_PORT, because each of several replicas on one host has its own port.
	Port *int `json:"port,omitempty"`
}

// PoolReplica is an inference server with a fixed address.
type PoolReplica struct {
	// ID is by default "r" and the number of the replica.
	ID  string `json:"id,omitempty"`
	URL string `json:"url,omitempty"`
	// MetricsURL is the URL of the metrics, if they have their own.
	MetricsURL string `json:"metricsUrl,omitempty"`
}

// PoolFallback is a pool to which runs can change.
type PoolFallback struct {
	Pool string `json:"pool"`
	// On lists the reasons for a change: capacity, image, throttled, and for a pool of an engine
	// error, queue, context.
	On []string `json:"on"`
	// ThrottledSeconds is for the reason throttled: how long the platform must have throttled
	// the starts of an attempt.
	ThrottledSeconds *int `json:"throttledSeconds,omitempty"`
}

// PoolWarm are the settings of the warm machines of a pool. A warm machine is created and
// stopped before a run needs it.
type PoolWarm struct {
	// Min is the number of machines that are kept ready for Image and its size. Max is the
	// maximum number of machines that no run has claimed.
	Min int `json:"min,omitempty"`
	Max int `json:"max"`
	// AheadSeconds is how long before each firing a machine is created for it; 0 is never.
	AheadSeconds int `json:"aheadSeconds,omitempty"`
	// MaxAgeSeconds is the age at which an unclaimed machine is replaced; 0 is a day.
	MaxAgeSeconds int `json:"maxAgeSeconds,omitempty"`
	// After is the action after the run of a machine: destroy or recycle. The default is
	// destroy.
	After string `json:"after,omitempty"`
	// Image, CPUs and MemoryMB describe the machines of Min. Absent members are those of the
	// deployment.
	Image    string `json:"image,omitempty"`
	CPUs     int    `json:"cpus,omitempty"`
	MemoryMB int    `json:"memoryMb,omitempty"`
}

// PoolSettings are the settings of the runner of a pool.
type PoolSettings struct {
	// Apps and Regions are for the runner fly, in order of preference.
	Apps    []string `json:"apps,omitempty"`
	Regions []string `json:"regions,omitempty"`
	// Cluster, Namespace, PodDefaults (a pod specification) and Labels (of the Jobs) are for
	// the runner kubernetes.
	Cluster     string            `json:"cluster,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	PodDefaults json.RawMessage   `json:"podDefaults,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	// Socket and Network are for the runner container.
	Socket  string `json:"socket,omitempty"`
	Network string `json:"network,omitempty"`
}

// PoolDrain is the body of POST /v1/pools/{pool_id}/drain.
type PoolDrain struct {
	// DeadlineSeconds is the time after which the workers of the runs that still hold a slot
	// are asked to stop. If absent, they are never asked.
	DeadlineSeconds *int `json:"deadlineSeconds,omitempty"`
}

// PoolReload is the body of POST /v1/pools/{pool_id}/reload.
type PoolReload struct {
	// Model is a model of the catalog; by default the present one.
	Model string `json:"model,omitempty"`
	// DeadlineSeconds is how long the request waits for the tasks of the pool to end, 0 to 25.
	DeadlineSeconds int `json:"deadlineSeconds,omitempty"`
}

// Pool is the response of GET /v1/pools/{pool_id}.
type Pool struct {
	ID string `json:"id"`
	// Runner and Settings are as in PoolDefinition.
	Runner   string         `json:"runner,omitempty"`
	Warm     *PoolWarm      `json:"warm,omitempty"`
	Fallback []PoolFallback `json:"fallback,omitempty"`
	Settings *PoolSettings  `json:"settings,omitempty"`
	Engine   *PoolEngine    `json:"engine,omitempty"`
	// Sharing and From are as in PoolDefinition.
	Sharing    *PoolSharing `json:"sharing,omitempty"`
	From       *PoolFrom    `json:"from,omitempty"`
	Limit      int          `json:"limit"`
	QueueLimit int          `json:"queueLimit"`
	// Draining reports whether the pool drains: no run gets a slot. At DrainBy the workers of
	// the remaining runs are asked to stop.
	Draining bool      `json:"draining"`
	DrainBy  time.Time `json:"drainBy,omitzero"`
	// Held is the number of runs with a slot, Queued the number of queued runs.
	Held   int `json:"held"`
	Queued int `json:"queued"`
	// Version counts the changes from 1. It is 0 for the default pool before its first change.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
}

// Capabilities is the response of GET /v1/capabilities. The contract of the control plane uses
// snake_case.
type Capabilities struct {
	// APIVersion is the version of the OpenAPI document.
	APIVersion string             `json:"api_version"`
	Engines    []EngineCapability `json:"engines"`
}

// EngineCapability describes the capabilities of all pools of an engine together.
type EngineCapability struct {
	Engine             string   `json:"engine"`
	CtxMax             int      `json:"ctx_max"`
	SupportedWorkloads []string `json:"supported_workloads"`
	// RateLimits is empty, because only the concurrency is limited.
	RateLimits struct{}       `json:"rate_limits"`
	Features   EngineFeatures `json:"features"`
	// Concurrency is the maximum number of tasks that run at the same time.
	Concurrency int      `json:"concurrency"`
	Models      []string `json:"models"`
	Pools       []string `json:"pools"`
}

// EngineFeatures are the optional features of an engine.
type EngineFeatures struct {
	// Deterministic reports whether a pool generates the same tokens for the same seed.
	Deterministic bool `json:"deterministic"`
	// Request lists the optional members of requests that the engine has. EngineOptions lists the
	// members of its own request that it gets unchanged.
	Request       []string `json:"request"`
	EngineOptions []string `json:"engine_options"`
}

// PoolList contains the pools, ordered by id.
type PoolList struct {
	Pools []Pool `json:"pools"`
}

// PoolHealth is the response of GET /v1/pools/{pool_id}/health.
type PoolHealth struct {
	// Live reports whether the pool could be read. Ready reports whether it admits runs. If it
	// has an engine, Ready also requires a replica that accepts requests.
	Live     bool `json:"live"`
	Ready    bool `json:"ready"`
	Draining bool `json:"draining"`
	Held     int  `json:"held"`
	Queued   int  `json:"queued"`
	// Machines is the number of machines of the first 100 runs that hold a slot.
	Machines int `json:"machines"`
	// MachineStates counts those machines by the state of their run.
	MachineStates MachineCounts `json:"machineStates"`
	// WarmMachines counts the warm machines by state.
	WarmMachines WarmCounts  `json:"warmMachines"`
	Metrics      PoolMetrics `json:"metrics"`
	// Replicas are the replicas of a pool with an engine. They include the servers with fixed
	// addresses if this process sends requests to engines, and always those that Sortie runs.
	Replicas []ReplicaHealth `json:"replicas,omitempty"`
	// Remaining are the first 20 runs that hold a slot. A drain waits for them.
	Remaining []Holder `json:"remaining"`
	// Waiting are the first 20 runs of the queue, in its order.
	Waiting []Task `json:"waiting,omitempty"`
	// Drain is absent if the pool does not drain.
	Drain *PoolDrainState `json:"drain,omitempty"`
	// LastError is the newest failure of an attempt among the runs that hold a slot or wait. It
	// is null without one.
	LastError *PoolError `json:"lastError"`
	// Errors are the last failures of the platform, grouped by code and message, at most 10
	// groups, newest first. They are stored and outlive the runs and the process.
	Errors []PoolErrorGroup `json:"errors"`
}

// PoolDrainState is the progress of a pool's drain.
type PoolDrainState struct {
	// Phase is waiting, ending, stopping or drained.
	Phase string `json:"phase"`
	// Deadline is the time at which the workers are asked to stop. It is absent without a
	// deadline.
	Deadline time.Time `json:"deadline,omitzero"`
	// Runs is the number of runs that hold a slot. WarmMachines is the number of warm machines.
	Runs         int `json:"runs"`
	WarmMachines int `json:"warmMachines"`
}

// MachineCounts counts the machines that are starting, running and ending.
type MachineCounts struct {
	Starting int `json:"starting"`
	Running  int `json:"running"`
	Ending   int `json:"ending"`
}

// PoolErrorGroup is a group of platform failures with the same code and message. Messages that
// differ only in ids, numbers and times are in the same group.
type PoolErrorGroup struct {
	Code string `json:"code"`
	// Message is the message of the last failure. Text that looks like a secret is removed.
	Message string    `json:"message"`
	Count   int       `json:"count"`
	FirstAt time.Time `json:"firstAt"`
	LastAt  time.Time `json:"lastAt"`
}

// PoolWait is an estimated wait.
type PoolWait struct {
	P50Seconds float64 `json:"p50Seconds"`
	P90Seconds float64 `json:"p90Seconds"`
	// Measured is the number of measured runs on which it is based; 0 means a guess.
	Measured int `json:"measured"`
}

// ReplicaHealth is the state of a replica of an engine.
type ReplicaHealth struct {
	ID string `json:"id"`
	// Live reports whether the server answers. Ready reports whether it accepts requests and is
	// not in a backoff after failures.
	Live  bool `json:"live"`
	Ready bool `json:"ready"`
	// Reason says why the replica is not ready. It is empty if the replica is ready.
	Reason string `json:"reason,omitempty"`
	// Held is the number of its tasks. EngineVersion is absent until it has had a task.
	Held          int    `json:"held"`
	EngineVersion string `json:"engineVersion,omitempty"`
	// Machine is absent for a server with a fixed address.
	Machine *ReplicaMachine `json:"machine,omitempty"`
}

// Serves identifies a replica of a pool with an engine.
type Serves struct {
	Pool    string `json:"pool"`
	Replica string `json:"replica"`
}

// ReplicaMachine is a replica that Sortie runs.
type ReplicaMachine struct {
	// State is waiting, starting, serving, draining or ending. Since is the time at which it
	// began.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// RunID and TaskID identify the run of the replica, URL is the address of its server. They
	// are absent until they exist.
	RunID  string `json:"runId,omitempty"`
	TaskID string `json:"taskId,omitempty"`
	URL    string `json:"url,omitempty"`
	// Model is the model with which the run was started.
	Model string `json:"model,omitempty"`
	// Failures is the number of consecutive runs that ended soon after their start. The next
	// run is created at RetryAt.
	Failures int       `json:"failures"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
	// LastError is the reason for the end of the run LastRunID. It is absent if no run has
	// ended on its own.
	LastError *PoolError `json:"lastError,omitempty"`
	LastRunID string     `json:"lastRunId,omitempty"`
}
