package capacity

import (
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// RunFacts are the observations about a run besides its record.
type RunFacts struct {
	EndedAt       time.Time
	TerminatingAt time.Time
	// QueuedAt is when the run was first seen in its pool's queue, for its last stay there.
	QueuedAt time.Time
	// JobQueuedAt is the same for the queue of its job. enteredAt is when the run was first
	// seen in its state. actingAt is when its action was seen to begin.
	JobQueuedAt, EnteredAt, ActingAt time.Time
	// CreatedAt is when the run was first seen. actedAt is when its action was seen to
	// continue. refusedAt is when the last refusal of its hook was seen. admittedAt is when its
	// admission was seen. contendsSince is when it was seen to hold or await a slot of its job.
	CreatedAt, ActedAt, RefusedAt, AdmittedAt, ContendsSince time.Time
	// KeyQueuedAt is the same for the queue of its key.
	KeyQueuedAt time.Time
	// Machines counts the machines of all attempts.
	Machines int
	// Steps are the fallbacks of the run.
	Steps []run.DetourStep
	// Missing is the position of an execution that has not started.
	Missing      harness.Position
	MissingStart int
	// Name is the name of the execution with the start number named.
	Name  string
	Named int
}

// FactsOf returns the observations about a run.
func (w *Capacity) FactsOf(r *run.Run) *RunFacts {
	if w.runs[r.ID] == nil {
		w.runs[r.ID] = &RunFacts{}
	}
	return w.runs[r.ID]
}
