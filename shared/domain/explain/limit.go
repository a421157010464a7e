package explain

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// LimitKind is the kind of a limit.
type LimitKind string

// The limits that can apply to a run.
const (
	// LimitPool is the number of slots of a pool: its concurrent attempts.
	LimitPool LimitKind = "pool"
	// LimitJob is the number of slots of a job (maxConcurrentRuns).
	LimitJob LimitKind = "job"
	// LimitKey is the number of slots of a concurrencyKey.
	LimitKey LimitKind = "key"
	// LimitAttempts is the number of attempts whose machine started.
	LimitAttempts LimitKind = "attempts"
	// LimitStarts is the number of further starts after machines that never started.
	LimitStarts LimitKind = "starts"
	// LimitChildren is the number of active children of a run (maxParallel).
	LimitChildren LimitKind = "children"
)

// LimitKinds lists all kinds.
func LimitKinds() []LimitKind {
	return []LimitKind{LimitPool, LimitJob, LimitKey, LimitAttempts, LimitStarts, LimitChildren}
}

// Limit is a limit that applies to a run.
type Limit struct {
	Kind LimitKind
	// Name is the pool, the job or the key; empty for a limit that concerns only the run.
	Name string
	// Used is the used part of the limit, including that of the run itself. Allowed is the
	// limit.
	Used, Allowed int
	// Queued is the number of runs that wait for a slot, at most limit.QueuePositions.
	Queued int
	// Holders are runs that hold a slot, at most MaxHolders.
	Holders []Holder
}

// MaxHolders is the maximum number of holders that a Limit names.
const MaxHolders = 20

// Holder is a run that holds a slot.
type Holder struct {
	RunID, TaskID, JobID string
	State                run.State
	// Since is when the run got the slot.
	Since time.Time
	// Cancelling: the end of the run or its attempt was requested.
	Cancelling bool
	class      string
}

// HolderOf returns the holder for a run and the slot that it holds.
func HolderOf(r run.Run, s platform.Slot) Holder {
	return Holder{
		RunID: r.ID, TaskID: r.TaskID, JobID: r.JobID, State: r.State, Since: s.Since, Cancelling: r.EndRequest() != nil, class: ClassOf(r),
	}
}

// Queue describes a pool, or the slots of a job or a key.
type Queue struct {
	// Name is the name without the prefix of job and key pools.
	Name string
	// Limit is the number of slots; 0 means no limit.
	Limit int
	// QueueLimit is the maximum number of queued runs; 0 means no limit.
	QueueLimit int
	// Draining: the pool starts no runs. Unknown: the pool was deleted.
	Draining, Unknown bool
	// Held is the number of held slots. Holders are some of the runs that hold them.
	Held    int
	Holders []Holder
	// Queued is the number of queued runs. Position is the number of queued runs ahead of the
	// run; -1 if the run is not queued here. Ahead is the position that it would get if it
	// joined now.
	Queued, Position, Ahead int
	// Measures are the measurements of the runs of the queue.
	Measures Measures
}

// applies reports whether the queue exists and has a limit.
func (q *Queue) applies() bool { return q != nil && q.Limit > 0 }

func (q *Queue) limit(kind LimitKind) Limit {
	return Limit{Kind: kind, Name: q.Name, Used: q.Held, Allowed: q.Limit, Queued: q.Queued, Holders: q.Holders[:min(len(q.Holders), MaxHolders)]}
}

// forecast returns when the run at a position is expected to start.
func (q *Queue) forecast(position int, r run.Run, kind LimitKind, limiter fleet.StartLimiter, now time.Time) Range {
	if kind == LimitPool && !q.Draining && (q.Limit == 0 || q.Held < q.Limit) && position == 0 && !limiter.Paced(now) {
		return q.Measures.Started(ClassOf(r))
	}
	return NewForecast(q.Load(kind, limiter, now), q.Measures).QueuedAs(position, ClassOf(r), SizeOf(r))
}

// Load returns the load of the queue for a forecast.
func (q *Queue) Load(kind LimitKind, limiter fleet.StartLimiter, now time.Time) Load {
	l := Load{Limit: q.Limit, Others: max(q.Held-len(q.Holders), 0), HeldByRun: kind != LimitPool}
	for _, h := range q.Holders {
		l.Held = append(l.Held, Held{h.class, max(now.Sub(h.Since), 0)})
	}
	if limiter.Paced(now) && !l.HeldByRun {
		l.Permit, l.Interval = pace(limiter, now)
	}
	return l
}

// pace returns the time until the next permitted start, and the time between two permitted
// starts.
func pace(limiter fleet.StartLimiter, now time.Time) (permit, interval time.Duration) {
	for i, app := range limiter.Apps {
		if wait := max(app.Permit().Sub(now), 0); i == 0 || wait < permit {
			permit = wait
		}
		interval += app.Interval
	}
	n := time.Duration(max(len(limiter.Apps), 1))
	return permit, interval / n / n
}

// ChangeKind is the kind of a change.
type ChangeKind string

// The kinds of changes.
const (
	RaiseLimit  ChangeKind = "raise_limit"  // raise the limit of the pool
	ResumePool  ChangeKind = "resume_pool"  // resume the draining pool
	EndRun      ChangeKind = "end_run"      // end a run that holds a slot
	ResumeJob   ChangeKind = "resume_job"   // resume the paused job
	SetSchedule ChangeKind = "set_schedule" // set a schedule with further times
	// RerunDownstream is a rerun of a run with the jobs that come after it.
	RerunDownstream ChangeKind = "rerun_downstream"
)

// ChangeKinds lists all kinds.
func ChangeKinds() []ChangeKind {
	return []ChangeKind{RaiseLimit, ResumePool, EndRun, ResumeJob, SetSchedule, RerunDownstream}
}

// Change is a single change that would start the run, or make the job fire.
type Change struct {
	Kind ChangeKind
	// Name is the pool, the job, or the run to end or to rerun.
	Name string
	// From and To are the values of a limit; zero for other changes.
	From, To int
}

// String returns the change as an imperative.
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
	case RerunDownstream:
		return "rerun run " + c.Name + " with the jobs that come after it"
	}
	return ""
}
