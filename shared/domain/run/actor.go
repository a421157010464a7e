package run

// Actor identifies the client or component that caused an event.
type Actor struct {
	// Subject names the actor: "token:3f9a1c" for a client, "worker:ID", "schedule:JOB",
	// "job:JOB" for an action of a job, "pool:POOL", ActorSteps or ActorSweep.
	Subject string `json:"subject,omitempty"`
	// Scopes are the scopes of a client's token.
	Scopes []string `json:"scopes,omitempty"`
}

// The subjects of Sortie itself.
const (
	ActorSteps = "service:steps"
	ActorSweep = "service:sweep"
)

var sweep = Actor{Subject: ActorSweep}

// Name returns the subject. The zero value means ActorSteps: the state machine causes most
// events, and its name is not stored.
func (a Actor) Name() string {
	if a.Subject == "" {
		return ActorSteps
	}
	return a.Subject
}

// factWithActor is a fact with an actor. Facts without one come from the state machine.
type factWithActor interface {
	// actor returns the actor that caused the fact about r.
	actor(r Run) Actor
}

func actorOf(f Fact, r Run) Actor {
	if by, ok := f.(factWithActor); ok {
		return by.actor(r)
	}
	return Actor{}
}

// creator returns the actor that created a new run.
func (r Run) creator() Actor {
	if r.CreatedBy.Subject != "" {
		return r.CreatedBy
	}
	switch r.Trigger {
	case TriggerSchedule, TriggerCatchUp:
		return Actor{Subject: "schedule:" + r.JobID}
	case TriggerJob, TriggerAfter:
		if len(r.Lineage) > 0 {
			return Actor{Subject: "job:" + r.Lineage[len(r.Lineage)-1]}
		}
	case TriggerFan:
		return Actor{Subject: "job:" + r.JobID}
	case TriggerPool:
		if r.Serves != nil {
			return Actor{Subject: "pool:" + r.Serves.Pool}
		}
	case TriggerRequest, TriggerManual:
	}
	return Actor{}
}

// workerActor returns the actor for the worker id; if id is empty, for the worker of the
// current attempt, or else its machine.
func workerActor(r Run, id string) Actor {
	if id == "" {
		id = r.Attempt.WorkerID
	}
	if id == "" {
		id = r.Attempt.MachineName
	}
	return Actor{Subject: "worker:" + id}
}

func (f WorkerContacted) actor(r Run) Actor { return workerActor(r, f.WorkerID) }

func (f OutputSent) actor(r Run) Actor { return workerActor(r, "") }

func (f Reported) actor(r Run) Actor { return workerActor(r, f.WorkerID) }

func (f CancelRequested) actor(Run) Actor { return Actor{Subject: f.By, Scopes: f.Scopes} }

func (f OutputExpiring) actor(Run) Actor { return f.By }

func (f Drained) actor(Run) Actor { return Actor{Subject: f.Pool.UpdatedBy} }

func (HeartbeatsChecked) actor(Run) Actor { return sweep }

func (Restarted) actor(Run) Actor { return sweep }

func (ExecutionChecked) actor(Run) Actor { return sweep }

func (OutputDeleted) actor(Run) Actor { return sweep }

func (f Visited) actor(r Run) Actor { return actorOf(f.Fact, r) }

// Swept is a fact that a sweep observed.
type Swept struct{ Fact Fact }

func (f Swept) acted(r Run) bool {
	own, ok := f.Fact.(fromExecution)
	return ok && own.acted(r)
}

func (f Swept) apply(d *draft) error { return f.Fact.apply(d) }

func (Swept) actor(Run) Actor { return sweep }
