package run

import (
	"cmp"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
)

// EngineMachines are the replicas of an engine that Sortie runs itself: each is a run of a
// job whose program is the server.
type EngineMachines struct {
	// Job is the id of the job.
	Job string `json:"job"`
	// Count is the number of replicas.
	Count int `json:"count"`
	// Port is where the server listens in its machine. Machines that share a host have a
	// port each instead.
	Port int `json:"port"`
	// Exec: the one who stored the pool had the scope exec.
	Exec bool `json:"exec,omitempty"`
}

// DefaultReplicaPort is the port of EngineMachines that name none.
const DefaultReplicaPort = 8080

// checkMachines returns the faults of the replicas that Sortie runs.
func (e EnginePlace) checkMachines() (found []*fault.Fault) {
	invalid := func(field, format string, args ...any) {
		found = append(found, fault.Invalid("engine.machines"+field, format, args...))
	}
	m := *e.Machines
	if e.Kind == EngineMock {
		invalid("", "machines with the engine mock, which has no server, want replicas")
	}
	if len(e.Replicas) > 0 {
		invalid("", "machines beside replicas, want one of both")
	}
	if !limit.ValidName(m.Job) {
		invalid(".job", "missing or malformed job %q, want the id of a job", limit.Cut(m.Job, limit.FileName))
	}
	if m.Count < 1 || m.Count > MaxReplicas {
		invalid(".count", "%d is out of range, want 1 to %d", m.Count, MaxReplicas)
	}
	if m.Port < 1 || m.Port > 65535 {
		invalid(".port", "%d is out of range, want 1 to 65535", m.Port)
	}
	return found
}

// Serves identifies the replica that a run is.
type Serves struct {
	Pool string `json:"pool"`
	// Replica is the id of the replica. The runs that replace each other have the same one.
	Replica string `json:"replica"`
}

// ReplicaState is the state of a replica that Sortie runs.
type ReplicaState string

// The states.
const (
	// ReplicaWaiting: it has no run. A sweep starts one at RetryAt.
	ReplicaWaiting ReplicaState = "waiting"
	// ReplicaStarting: its run is created, or has no machine with an address yet.
	ReplicaStarting ReplicaState = "starting"
	// ReplicaServing: its run has an address, and gets tasks while its engine is ready.
	ReplicaServing ReplicaState = "serving"
	// ReplicaDraining: it gets no further tasks. A sweep ends its run after its tasks.
	ReplicaDraining ReplicaState = "draining"
	// ReplicaEnding: its run was asked to end, and has not ended.
	ReplicaEnding ReplicaState = "ending"
)

// Replica is a replica that Sortie runs. Number is raised and the settings are stored before
// the run is created under Key, so that two sweeps create one run.
type Replica struct {
	ID    string       `json:"id"`
	Phase ReplicaState `json:"state"`
	// Since is when it entered the state.
	Since time.Time `json:"since"`
	// Number counts the runs of the replica.
	Number int `json:"number"`
	// Key is the idempotency key of the run.
	Key string `json:"key,omitempty"`
	// Job, Model and Loads are the settings that the run was created with, AskedPort the
	// port of the settings. Port is where its server listens.
	Job       string `json:"job,omitempty"`
	Model     string `json:"model,omitempty"`
	Loads     int    `json:"loads,omitempty"`
	AskedPort int    `json:"askedPort,omitempty"`
	Port      int    `json:"port,omitempty"`
	// Run is the id of the run, TaskID its handle; empty until it was created.
	Run    string `json:"run,omitempty"`
	TaskID string `json:"taskId,omitempty"`
	// URL is the address of the server, of the attempt of the run; empty while it is not
	// known.
	URL     string `json:"url,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Failures counts the runs, one after the other, that ended soon or were refused. RetryAt
	// is when the next one may be created.
	Failures int       `json:"failures,omitempty"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
	// Fault is why the last run ended that was not asked to, LastRun its id.
	Fault   *fault.Fault `json:"fault,omitempty"`
	LastRun string       `json:"lastRun,omitempty"`
}

// ReplicaSet is the record of the replicas that Sortie runs for a pool of an engine.
type ReplicaSet struct {
	// Pool and CreatedAt distinguish the set from others, also of a pool with the same id.
	Pool      string    `json:"pool"`
	CreatedAt time.Time `json:"createdAt"`
	Replicas  []Replica `json:"replicas"`
}

// Serving returns the replicas that a pool sends tasks to.
func (s ReplicaSet) Serving(p Pool) (found []EngineReplica) {
	for _, r := range s.Replicas {
		if r.Phase == ReplicaServing && r.URL != "" && p.Engine != nil && r.Model == p.Engine.Model {
			found = append(found, EngineReplica{ID: r.ID, Run: r.Run, URL: r.URL})
		}
	}
	return found
}

// Environment returns the variables that tell a program which replica it is.
func (s ReplicaSet) Environment(r Replica, host, engineModel string) map[string]string {
	return map[string]string{
		"ENGINE_POOL": s.Pool, "ENGINE_REPLICA": r.ID, "ENGINE_HOST": host, "ENGINE_PORT": strconv.Itoa(r.Port),
		"ENGINE_MODEL": cmp.Or(engineModel, r.Model),
	}
}
