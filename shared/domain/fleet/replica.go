package fleet

import (
	"cmp"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// ReplicaState is the state of a replica that Sortie runs.
type ReplicaState string

// The states.
const (
	// ReplicaWaiting: the replica has no run. A sweep creates one after RetryAt.
	ReplicaWaiting ReplicaState = "waiting"
	// ReplicaStarting: the run is being created, or its machine has no known address yet.
	ReplicaStarting ReplicaState = "starting"
	// ReplicaServing: the run has an address. It gets tasks while its engine is ready.
	ReplicaServing ReplicaState = "serving"
	// ReplicaDraining: the replica gets no further tasks. A sweep ends its run once its tasks
	// have ended.
	ReplicaDraining ReplicaState = "draining"
	// ReplicaEnding: the run was asked to end, and has not ended.
	ReplicaEnding ReplicaState = "ending"
)

// Replica is a replica that Sortie runs. Number and the settings are stored before the run is
// created under Key, so that two sweeps create one run.
type Replica struct {
	ID    string       `json:"id"`
	Phase ReplicaState `json:"state"`
	// Since is when the replica entered the state.
	Since time.Time `json:"since"`
	// Number counts the runs of the replica.
	Number int `json:"number"`
	// Key is the idempotency key of the run.
	Key string `json:"key,omitempty"`
	// Job, Model and Loads are the settings that the run was created with. AskedPort is the
	// port in the settings, Port the one on which the server listens.
	Job       string `json:"job,omitempty"`
	Model     string `json:"model,omitempty"`
	Loads     int    `json:"loads,omitempty"`
	AskedPort int    `json:"askedPort,omitempty"`
	Port      int    `json:"port,omitempty"`
	// Run is the id of the run, TaskID its task id; empty until the run is created.
	Run    string `json:"run,omitempty"`
	TaskID string `json:"taskId,omitempty"`
	// URL is the address of the server in the given attempt of the run; empty until it is
	// known.
	URL     string `json:"url,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Failures counts consecutive runs that ended early or whose creation was refused. RetryAt
	// is when the next run may be created.
	Failures int       `json:"failures,omitempty"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
	// Fault is the fault of the last run that ended without a request, LastRun its id.
	Fault   *fault.Fault `json:"fault,omitempty"`
	LastRun string       `json:"lastRun,omitempty"`
}

// ReplicaSet is the record of the replicas that Sortie runs for a pool.
type ReplicaSet struct {
	// Pool and CreatedAt identify the set. CreatedAt distinguishes it from that of a deleted
	// pool with the same id.
	Pool      string    `json:"pool"`
	CreatedAt time.Time `json:"createdAt"`
	Replicas  []Replica `json:"replicas"`
}

// Serving returns the replicas to which the pool sends tasks: those that serve its model.
func (s ReplicaSet) Serving(p platform.Pool) (found []platform.EngineReplica) {
	for _, r := range s.Replicas {
		if r.Phase == ReplicaServing && r.URL != "" && p.Engine != nil && r.Model == p.Engine.Model {
			found = append(found, platform.EngineReplica{ID: r.ID, Run: r.Run, URL: r.URL})
		}
	}
	return found
}

// Environment returns the environment variables that identify the replica to its program.
func (s ReplicaSet) Environment(r Replica, host, engineModel string) map[string]string {
	return map[string]string{
		"ENGINE_POOL": s.Pool, "ENGINE_REPLICA": r.ID, "ENGINE_HOST": host, "ENGINE_PORT": strconv.Itoa(r.Port),
		"ENGINE_MODEL": cmp.Or(engineModel, r.Model),
	}
}
