package explain

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// LimitKind is the kind of a limit.
type LimitKind string

// The limits that can apply to a run.
const (
	// LimitPool are the slots of a pool: its concurrent attempts.
	LimitPool LimitKind = "pool"
	// LimitJob are the slots of a job, by its constraint maxConcurrentRuns.
	LimitJob LimitKind = "job"
	// LimitKey are the slots of a concurrencyKey.
	LimitKey LimitKind = "key"
	// LimitAttempts are the attempts whose machine started.
	LimitAttempts LimitKind = "attempts"
	// LimitStarts are the further starts after machines that never started.
	LimitStarts LimitKind = "starts"
)

// LimitKinds lists all kinds.
func LimitKinds() []LimitKind {
	return []LimitKind{LimitPool, LimitJob, LimitKey, LimitAttempts, LimitStarts}
}

// Limit is a limit that applies to a run.
type Limit struct {
	Kind LimitKind
	// Name is the pool, the job or the key; empty for a limit of the run alone.
	Name string
	// Used is the held part of the limit, including that of the run itself. Allowed is the
	// limit.
	Used, Allowed int
	// Queued is the number of runs that wait for it, at most limit.QueuePositions.
	Queued int
	// Holders are runs that hold it, at most MaxHolders.
	Holders []Holder
}

// MaxHolders is how many holders of a limit are named.
const MaxHolders = 20

// Holder is a run that holds a slot.
type Holder struct {
	RunID, TaskID, JobID string
	State                run.State
	// Since is when it got the slot.
	Since time.Time
	// Cancelling: the end of the run was requested.
	Cancelling bool
	class      string
}

// HolderOf returns a run that holds a slot.
func HolderOf(r run.Run, s run.Slot) Holder {
	return Holder{
		RunID: r.ID, TaskID: r.TaskID, JobID: r.JobID, State: r.State, Since: s.Since, Cancelling: r.EndRequest() != nil, class: ClassOf(r),
	}
}

// Queue is a pool, or the slots of a job or of a key.
type Queue struct {
	// Name is without the prefix of the pools of jobs and keys.
	Name string
	// Limit is the number of slots; 0 means no limit.
	Limit int
	// QueueLimit is the largest number of queued runs; 0 means no limit.
	QueueLimit int
	// Draining: the pool starts no run. Unknown: it was deleted.
	Draining, Unknown bool
	// Held is the number of held slots, Holders are some of the runs that hold them.
	Held    int
	Holders []Holder
	// Queued is the number of queued runs. Position is the number of those ahead of the
	// run; -1 if the run is not queued here. Ahead is what its position would be if it
	// joined now.
	Queued, Position, Ahead int
	// Measures are those of the runs of the queue.
	Measures Measures
}

// applies reports whether the queue limits anything.
func (q *Queue) applies() bool { return q != nil && q.Limit > 0 }

func (q *Queue) limit(kind LimitKind) Limit {
	return Limit{Kind: kind, Name: q.Name, Used: q.Held, Allowed: q.Limit, Queued: q.Queued, Holders: q.Holders[:min(len(q.Holders), MaxHolders)]}
}

// forecast returns when the run at a position gets a slot and starts.
func (q *Queue) forecast(position int, r run.Run, kind LimitKind, gate run.StartGate, now time.Time) Range {
	if kind == LimitPool && !q.Draining && (q.Limit == 0 || q.Held < q.Limit) && position == 0 && !gate.Paced(now) {
		return q.Measures.Started(ClassOf(r))
	}
	return NewForecast(q.Load(kind, gate, now), q.Measures).QueuedAs(position, ClassOf(r), SizeOf(r))
}

// Load returns the load of the queue for a forecast.
func (q *Queue) Load(kind LimitKind, gate run.StartGate, now time.Time) Load {
	l := Load{Limit: q.Limit, Others: max(q.Held-len(q.Holders), 0), Kept: kind != LimitPool}
	for _, h := range q.Holders {
		l.Held = append(l.Held, Held{h.class, max(now.Sub(h.Since), 0)})
	}
	if gate.Paced(now) && !l.Kept {
		l.Permit, l.Interval = pace(gate, now)
	}
	return l
}

// pace returns the time until the next permitted start and the time between two permitted
// starts.
func pace(gate run.StartGate, now time.Time) (permit, interval time.Duration) {
	for i, app := range gate.Apps {
		if wait := max(app.Permit().Sub(now), 0); i == 0 || wait < permit {
			permit = wait
		}
		interval += app.Interval
	}
	n := time.Duration(max(len(gate.Apps), 1))
	return permit, interval / n / n
}

// ChangeKind is the kind of a change.
type ChangeKind string

// The changes.
const (
	RaiseLimit  ChangeKind = "raise_limit"  // of the pool
	ResumePool  ChangeKind = "resume_pool"  // which is draining
	EndRun      ChangeKind = "end_run"      // that holds a slot
	ResumeJob   ChangeKind = "resume_job"   // which is paused
	SetSchedule ChangeKind = "set_schedule" // of the job
)

// ChangeKinds lists all kinds.
func ChangeKinds() []ChangeKind {
	return []ChangeKind{RaiseLimit, ResumePool, EndRun, ResumeJob, SetSchedule}
}

// Change is a single change that would let the run start, or the job fire.
type Change struct {
	Kind ChangeKind
	// Name is the pool, the job, or the run to end.
	Name string
	// From and To are the values of a limit; zero for another change.
	From, To int
}

// String describes the change in the imperative.
func (c Change) String() string {
	switch c.Kind {
	case RaiseLimit:
		return fmt.Sprintf("raise the limit of pool %s from %d to %d", c.Name, c.From, c.To)
	case ResumePool:
		return "resume pool " + c.Name
	case EndRun:
		return fmt.Sprintf("end run %s, which holds a slot", c.Name)
	case ResumeJob:
		return "resume job " + c.Name
	case SetSchedule:
		return "give job " + c.Name + " a schedule with a time ahead"
	}
	return ""
}
