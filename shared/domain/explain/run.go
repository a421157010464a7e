package explain

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Facts are the records about a run that the caller has read.
type Facts struct {
	Now time.Time
	// Pool describes the pool of the run. Job and Key describe the slots of its job and its
	// key; nil if the run has no such limit.
	Pool     Queue
	Job, Key *Queue
	// Limiter is the start limiter of the pool.
	Limiter fleet.StartLimiter
	// Last is the last result of the run's job; nil without one.
	Last *run.Result
	// Previous is the violation of requirePreviousSuccess by the previous run of the job; nil
	// if that run succeeded or does not exist.
	Previous *spec.ConstraintViolation
	// Refusal says why the last start was refused; empty if it was not.
	Refusal string
	// Fallbacks are the fallbacks of the run's pools whose pool admits runs.
	Fallbacks []platform.Fallback
}

// Explanation says why a run is in its state.
type Explanation struct {
	Reason Reason
	// Message is the reason in a sentence, with details of the run.
	Message string
	// Until is when the run leaves its state, at the latest; zero if that depends on other runs
	// or on its work.
	Until time.Time
	// Limits are the limits that apply to the run; empty if it has ended.
	Limits []Limit
	// Position is the number of runs ahead in the run's queue, at most
	// limit.QueuePositions; -1 if the run is not queued.
	Position int
	// Expected is when the machine of the current attempt is expected to run; nil if it already
	// runs, if the run has ended, or if the start depends on an action of a person.
	Expected *Expected
	// Change is a single change that lets the run start at once; nil if there is no such
	// change, or if nothing blocks the run.
	Change *Change
	// FellBack are the fallbacks of the run since it left its own pool.
	FellBack []run.DetourStep
	// Fallbacks are the fallbacks that a refused start can still use.
	Fallbacks []platform.Fallback
	// Shadow compares an inference task with its copy for another model; nil without one.
	Shadow *Shadow
	// Graph are the jobs of the run's graph, each after those that it comes after; nil for a run
	// that is in no graph.
	Graph []GraphJob
}

// Expected is an expected time, as a range.
type Expected struct {
	P50, P90 time.Time
	// Measured is the number of measured runs behind the estimate; 0 means that no run has
	// ended yet.
	Measured int
}

// Basis describes the data behind the range.
func (e Expected) Basis() string {
	if e.Measured == 0 {
		return fmt.Sprintf("no run has ended yet; %s for each run ahead, or what the times of the held slots make of it", PerPosition)
	}
	runs := "runs"
	if e.Measured == 1 {
		runs = "run"
	}
	return fmt.Sprintf("%d measured %s, the held slots and the runs ahead", e.Measured, runs)
}

// Run returns the explanation of a run.
func Run(r run.Run, f Facts) Explanation {
	x := Explanation{Position: -1}
	if r.Detour != nil {
		x.FellBack = r.Detour.Steps
	}
	if r.State.Terminal() {
		x.ended(r)
		x.split(r)
		x.shadow(r)
		return x
	}
	x.limits(r, f)
	switch {
	case r.Cancel != nil && r.State == run.Running && r.Fan != nil:
		x.because(Cancelling, time.Time{}, "a cancel was requested; the active children are cancelled: %s", r.Fan.Counts())
	case r.Cancel != nil && r.State == run.Running:
		x.because(Cancelling, r.Attempt.GraceUntil, "a cancel was requested; the worker has %s to end", r.Policy.CancelGrace)
	case r.Evicted() && r.State == run.Running:
		x.because(PoolDraining, r.Attempt.GraceUntil, "%s; the worker has %s to end, and the next attempt waits until the pool is resumed", r.Attempt.Eviction.Reason, r.Policy.CancelGrace)
	case !r.Execution.ActBy.IsZero() && f.Now.After(r.Execution.ActBy):
		x.because(ExecutionLate, time.Time{}, "the execution of the run was to act by %s; the sweep checks it", stamp(r.Execution.ActBy))
	default:
		x.explain(r, f)
	}
	if step, ok := r.LastStep(); ok && x.Reason != FallingBack {
		x.Message += fmt.Sprintf("; the run is in pool %s because pool %s %s (%s): %s", step.To, step.From, failedTo(r), step.Reason, step.Message)
	}
	if len(r.Followers) > 0 {
		x.Message += "; its end is awaited by job " + strings.Join(r.Followers, ", ")
	}
	if r.HasParent() {
		x.Message += fmt.Sprintf("; the run is child %d of run %s", r.Child.Number, r.Child.Parent)
	}
	if by := r.EndBy(); !by.IsZero() {
		x.Message += "; the deadline of the run is " + stamp(by)
	}
	x.split(r)
	x.shadow(r)
	x.fallbacks(r, f)
	x.expect(r, f)
	return x
}

func (x *Explanation) because(why Reason, until time.Time, format string, args ...any) {
	x.Reason, x.Message, x.Until = why, fmt.Sprintf(format, args...), until
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// limits lists the limits that apply to the run.
func (x *Explanation) limits(r run.Run, f Facts) {
	if f.Key.applies() {
		x.Limits = append(x.Limits, f.Key.limit(LimitKey))
	}
	if f.Pool.applies() {
		x.Limits = append(x.Limits, f.Pool.limit(LimitPool))
	}
	if f.Job.applies() {
		x.Limits = append(x.Limits, f.Job.limit(LimitJob))
	}
	retry := r.Policy.Retry
	x.Limits = append(x.Limits, Limit{Kind: LimitAttempts, Used: r.Spent.Attempts, Allowed: retry.MaxAttempts})
	if r.Spent.Starts > 0 {
		x.Limits = append(x.Limits, Limit{Kind: LimitStarts, Used: r.Spent.Starts, Allowed: retry.MaxFurtherStarts})
	}
}

func (x *Explanation) explain(r run.Run, f Facts) {
	a := r.Attempt
	switch {
	case r.State == run.PreRun && f.Now.Before(r.ScheduledAt):
		x.because(Scheduled, r.ScheduledAt, "the run is scheduled for %s", stamp(r.ScheduledAt))
	case r.KeySlot.State == platform.SlotQueued:
		x.queued(r, f, f.Key, KeyFull, "key")
	case r.Queued():
		x.queuedInPool(r, f)
	case r.State == run.PreRun, r.AwaitsAdmission():
		x.because(AdmissionDue, time.Time{}, "the run is about to ask for a slot of pool %s", f.Pool.Name)
	case r.State == run.Pending, r.State == run.ConditionPending, r.State == run.ConditionRunning:
		x.because(ConstraintsChecked, time.Time{}, "the constraints are being checked: %s", strings.Join(constraintsOf(r, f), "; "))
	case r.State == run.ActionPending, r.State == run.ActionRunning:
		x.acting(r, f)
	case r.State == run.ContainerCreating && a.BackoffUntil.After(f.Now):
		x.because(StartRefused, a.BackoffUntil, "%s; the start is repeated at %s", orElse(f.Refusal, "the machine was not created"), stamp(a.BackoffUntil))
	case r.State == run.ContainerCreating && a.StartAt.After(f.Now) && !a.Machine.Known():
		x.because(StartsPaced, a.StartAt, "the platform permits the start at %s", stamp(a.StartAt))
	case r.State == run.ContainerCreating && a.Waiting != "":
		x.because(WaitingForCluster, a.StartBy, "machine %s was created, and has not started: %s; it has until %s", a.Machine.ID, a.Waiting, stamp(a.StartBy))
	case r.State == run.ContainerCreating:
		what := "the machine was requested"
		if a.Machine.Known() {
			what = "machine " + a.Machine.ID + " was created"
		}
		x.because(MachineStarting, a.StartBy, "%s, and was not observed running; it has until %s", what, stamp(a.StartBy))
	case r.State == run.Running && r.Fan != nil:
		x.children(r, f)
	case r.State == run.Running:
		x.because(Running, r.RunBy(), "attempt %d runs since %s", a.Number, stamp(a.StartedAt))
	case r.FallsBack() && (r.State == run.Terminating || r.State == run.Retrying):
		step, _ := r.LastStep()
		x.because(FallingBack, r.RetryAt, "pool %s %s for attempt %d (%s): %s; the next attempt is in pool %s", step.From, failedTo(r), step.Attempt, step.Reason, step.Message, step.To)
	case r.State == run.Terminating && r.Succeeded():
		x.because(CleaningUp, time.Time{}, "the worker reported success; the machine is removed and the output checked")
	case r.State == run.Terminating:
		x.because(CleaningUp, time.Time{}, "attempt %d has ended: %s; the machine is removed", a.Number, faultOf(r))
	case r.State == run.Retrying:
		x.because(RetryDelayed, r.RetryAt, "attempt %d failed: %s; the next one is admitted at %s", a.Number, faultOf(r), stamp(r.RetryAt))
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func faultOf(r run.Run) string {
	if r.Fault == nil {
		return "no fault"
	}
	return string(r.Fault.Code) + ", " + r.Fault.Message
}

// queued explains that the run waits for a slot of a queue.
func (x *Explanation) queued(r run.Run, f Facts, q *Queue, why Reason, what string) {
	if q == nil {
		x.because(why, time.Time{}, "the run waits for a slot of its %s", what)
		return
	}
	x.Position = q.Position
	x.because(why, r.QueueBy(), "%d of %d slots of %s %s are held, and %s", q.Held, q.Limit, what, q.Name, ahead(q.Position))
	if f.Pool.Limit > 0 && f.Pool.Held >= f.Pool.Limit {
		return // the pool blocks the run too
	}
	x.Change = q.end(r)
}

// ahead describes a position in a queue.
func ahead(position int) string {
	switch position {
	case 0:
		return "the run is the next one"
	case 1:
		return "one run is ahead"
	}
	return fmt.Sprintf("%d runs are ahead", max(position, 0))
}

// end returns the change that ends one holder; nil if that would not free a slot for the run.
func (q *Queue) end(r run.Run) *Change {
	if q.Held-q.Limit+q.Position != 0 {
		return nil
	}
	for _, h := range q.Holders {
		if h.RunID != r.ID {
			return &Change{Kind: EndRun, Name: h.RunID}
		}
	}
	return nil
}

// queuedInPool explains that the run waits in the queue of its pool: for a slot, or for the
// next permitted start.
func (x *Explanation) queuedInPool(r run.Run, f Facts) {
	q := f.Pool
	x.Position = q.Position
	full := q.Limit > 0 && q.Held >= q.Limit
	permitted, _ := pace(f.Limiter, f.Now)
	switch {
	case q.Unknown:
		x.because(PoolUnknown, r.QueueBy(), "pool %s was deleted and starts no run until it exists again; %s", q.Name, ahead(q.Position))
	case q.Draining:
		x.because(PoolDraining, r.QueueBy(), "pool %s is draining and starts no run until it is resumed; %s", q.Name, ahead(q.Position))
		if !full && !f.Limiter.Paced(f.Now) && (q.Limit == 0 || q.Position < q.Limit-q.Held) {
			x.Change = &Change{Kind: ResumePool, Name: q.Name}
		}
	case full:
		x.because(PoolFull, r.QueueBy(), "%d of %d slots of pool %s are held, and %s", q.Held, q.Limit, q.Name, ahead(q.Position))
		if q.Position >= 0 && q.Position < positions && !f.Limiter.Paced(f.Now) {
			x.Change = &Change{Kind: RaiseLimit, Name: q.Name, From: q.Limit, To: q.Held + q.Position + 1}
		}
	case f.Limiter.Paced(f.Now):
		next, why := stamp(f.Now.Add(permitted)), "starts wait for the limit of the platform, which permits the next one"
		if f.Limiter.Slowed() {
			why = "the platform has throttled starts and permits the next one"
		}
		x.because(StartsPaced, r.QueueBy(), "%s of pool %s at %s; %s", why, q.Name, next, ahead(q.Position))
	default:
		x.because(SlotGranted, r.QueueBy(), "%d of %d slots of pool %s are held; the free ones are being granted, and %s", q.Held, q.Limit, q.Name, ahead(q.Position))
	}
}

// acting explains the action on violated constraints.
func (x *Explanation) acting(r run.Run, f Facts) {
	action, _ := r.ViolationAction()
	because := violated(r)
	switch a := r.Acting; {
	case a == nil || !a.Waits:
		x.because(ActionRunning, time.Time{}, "the action %s is being carried out on %s", action.Type, because)
	case r.AwaitsJobSlot():
		x.queued(r, f, f.Job, JobFull, "job")
		if x.Until = a.Until; a.Type == spec.ActionKillOld {
			x.Message += "; the oldest runs are being cancelled"
			x.Change = nil
		}
		x.Message += fmt.Sprintf("; the action %s waits until %s", a.Type, stamp(a.Until))
	default:
		x.because(ActionDelayed, a.NotBefore, "the action %s checks again at %s: %s", a.Type, stamp(a.NotBefore), because)
	}
}

// violated returns the violated constraints as text.
func violated(r run.Run) string {
	texts := make([]string, len(r.Violations))
	for i, v := range r.Violations {
		texts[i] = string(v.Constraint) + ", " + v.Message
	}
	return orElse(strings.Join(texts, "; "), "a constraint was violated")
}

// constraintsOf describes the constraints before the run.
func constraintsOf(r run.Run, f Facts) (found []string) {
	c := r.Constraints
	if c == nil {
		return []string{"none"}
	}
	if c.MaxConcurrentRuns > 0 {
		used, slots := 0, c.MaxConcurrentRuns
		if f.Job != nil {
			used, slots = f.Job.Held, f.Job.Limit
		}
		found = append(found, fmt.Sprintf("%s, %d of %d slots are held", spec.MaxConcurrentRuns, used, slots))
	}
	if c.RequirePreviousSuccess {
		last := "the job has no result"
		if f.Previous != nil {
			last = f.Previous.Message
		} else if f.Last != nil {
			last = "run " + f.Last.RunID + " " + outcome(*f.Last)
		}
		found = append(found, string(spec.RequirePreviousSuccess)+", "+last)
	}
	if c.CatchUpWindow > 0 && !r.ScheduledAt.IsZero() {
		found = append(found, fmt.Sprintf("%s, the run may start until %s", spec.CatchUpWindow, stamp(r.ScheduledAt.Add(c.CatchUpWindow))))
	}
	if c.PreRunHook != nil {
		found = append(found, fmt.Sprintf("%s, %s is asked", spec.PreRunHook, host(c.PreRunHook.URL)))
	}
	return found
}

// host returns only the host of an address, because its path may contain secrets.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "a hook"
	}
	return u.Host
}

// awaitsFailure reports whether a run was skipped because a run succeeded whose failure its job
// awaits.
func awaitsFailure(r run.Run) bool {
	return r.Missed.Reason == run.SkipUpstreamFailed && r.Graph != nil && slices.ContainsFunc(r.Graph.Upstream, func(p run.Parent) bool {
		return p.RunID == r.Missed.By.RunID && p.State == run.Completed && !p.Skipped
	})
}

// ended explains a run that has ended.
func (x *Explanation) ended(r run.Run) {
	switch {
	case r.Missed != nil:
		if awaitsFailure(r) {
			x.because(FiringsMissed, time.Time{}, "%s: it succeeded, and the job starts only after its failure", r.Missed)
			return
		}
		x.because(FiringsMissed, time.Time{}, "%s", r.Missed)
		if r.Missed.Reason == run.SkipUpstreamFailed {
			x.Change = &Change{Kind: RerunDownstream, Name: r.Missed.By.RunID}
		}
	case r.Overflowed != nil:
		x.because(KeyOverflowed, time.Time{}, "the run was skipped: %s", r.Overflowed)
	case r.Skipped:
		x.because(Skipped, time.Time{}, "the run was skipped: %s", violated(r))
	case r.State == run.Completed:
		x.because(Succeeded, time.Time{}, "the run succeeded in attempt %d", r.Attempt.Number)
	case r.State == run.Cancelled:
		x.because(Cancelled, time.Time{}, "%s", faultOf(r))
	case r.State == run.Orphaned:
		x.because(Orphaned, time.Time{}, "%s", faultOf(r))
	case r.Attempt.Number > 1:
		x.because(Failed, time.Time{}, "the run failed after %d attempts: %s", r.Attempt.Number, faultOf(r))
	default:
		x.because(Failed, time.Time{}, "%s", faultOf(r))
	}
}
