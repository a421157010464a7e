package run_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestAdmissionOfAJob runs a job with random constraints and a random action, while runs end,
// the limit changes, and the hook changes its answer. After each step it checks that
//
//   - no run takes a slot beyond the limit, or before an older run that waits for it,
//   - no run starts against a constraint, unless its action passes over the violation,
//   - no run is refused a slot, or waits for one, while a slot is free,
//   - the newest of the runs that replace older ones keep the slots.
func TestAdmissionOfAJob(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := newAdmission(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			j.now = j.now.Add(time.Second)
			switch rapid.SampledFrom([]string{"run", "run", "end", "end", "limit", "hook", "time"}).Draw(t, "step") {
			case "run":
				j.create()
			case "end":
				j.end()
			case "limit":
				j.limit = rapid.IntRange(0, 4).Draw(t, "limit")
			case "hook":
				j.refuses = !j.refuses
			case "time":
				j.now = j.now.Add(time.Minute)
			}
			j.settle()
			j.check()
		}
	})
}

// admission is a job with its runs and its slots.
type admission struct {
	*rapid.T
	now     time.Time
	limit   int
	refuses bool
	action  spec.Action
	// previous and hooked enable requirePreviousSuccess and the hook.
	previous, hooked bool
	runs             []*run.Run
	// refused are the runs that the hook refused in their last evaluation.
	refused map[string]bool
}

func newAdmission(t *rapid.T) *admission {
	kind := rapid.SampledFrom(spec.ViolationTypes()).Draw(t, "action")
	return &admission{
		T: t, now: epoch, limit: rapid.IntRange(1, 3).Draw(t, "slots"), refused: map[string]bool{},
		action:   spec.Action{Type: kind, Delay: 10 * time.Second, Limit: 24 * time.Hour, JobID: "other", Hook: &spec.Hook{}},
		previous: rapid.Bool().Draw(t, "previous"), hooked: rapid.Bool().Draw(t, "hooked"),
	}
}

// apply applies a fact as a store does: if no slot is free, it changes nothing.
func (j *admission) apply(r *run.Run, f run.Fact) (applied bool) {
	j.Helper()
	d, err := run.Decide(*r, f, j.now)
	if err != nil {
		j.Fatal(err)
	}
	switch d.JobLease {
	case run.LeaseTake:
		if len(j.queue()) > 0 || j.held() >= d.Run.JobSlot.Limit {
			return false
		}
	case run.LeaseGrant:
		if j.held() >= d.Run.JobSlot.Limit {
			return false
		}
	}
	d.Run.Execution.Pending = nil
	*r = d.Run
	if d.JobLease == run.LeaseTake || d.JobLease == run.LeaseGrant {
		if most := r.JobSlot.Limit; j.held() > most || most > max(j.limit, 1) {
			j.Fatalf("%s took a slot of %d: got %d holders, want at most %d", r.ID, most, j.held(), j.limit)
		}
	}
	return true
}

func (j *admission) held() (n int) {
	for _, r := range j.runs {
		if r.JobPoolState() == platform.SlotHeld {
			n++
		}
	}
	return n
}

// queue returns the runs that wait for a slot, oldest first: runs are created in that order.
func (j *admission) queue() (waiting []*run.Run) {
	for _, r := range j.runs {
		if r.AwaitsJobSlot() {
			waiting = append(waiting, r)
		}
	}
	return waiting
}

func (j *admission) create() {
	r := fresh()
	r.ID, r.JobID = fmt.Sprintf("%03d", len(j.runs)), "nightly"
	r.Constraints = &spec.Constraints{MaxConcurrentRuns: max(j.limit, 1), RequirePreviousSuccess: j.previous}
	if j.hooked {
		r.Constraints.PreRunHook = &spec.Hook{}
	}
	r.Actions = &spec.Actions{OnViolation: &j.action}
	created := run.New(r, j.now).Run
	j.runs = append(j.runs, &created)
	j.apply(&created, run.Admitted{Pool: "p"})
	j.evaluate(&created)
	j.apply(&created, run.ActionStarted{})
	j.carryOut(&created)
}

// carryOut does the work of act.
func (j *admission) carryOut(r *run.Run) {
	if r.ActionDue() {
		j.apply(r, run.ActionEnded{})
	}
	if !r.AwaitsJobSlot() || r.Acting.Type != spec.ActionKillOld {
		return
	}
	var contenders []run.Run
	for _, other := range j.runs {
		if other.JobPoolState() != "" {
			contenders = append(contenders, *other)
		}
	}
	replaced, by := r.Replaces(contenders, r.JobLimit(j.limit))
	if by != "" {
		j.apply(r, r.Replacement(by))
	}
	for _, old := range replaced {
		j.apply(j.find(old.ID), old.Replacement(r.ID))
	}
}

func (j *admission) find(id string) *run.Run {
	i := slices.IndexFunc(j.runs, func(r *run.Run) bool { return r.ID == id })
	return j.runs[i]
}

// evaluate does the work of constrain and act.
func (j *admission) evaluate(r *run.Run) {
	var violations []spec.ConstraintViolation
	if p := j.before(r); p != nil && j.previous {
		if v, violated := run.PreviousViolation(*p, j.now); violated {
			violations = append(violations, v)
		}
	}
	if j.refused[r.ID] = j.hooked && j.refuses; j.refused[r.ID] {
		violations = append(violations, spec.ConstraintViolation{Constraint: spec.PreRunHook})
	}
	f := r.Evaluation(violations, j.limit)
	for !j.apply(r, f) {
		if len(j.queue()) == 0 && j.held() < f.Slots {
			j.Fatalf("%s found none of %d slots free, %d are held", r.ID, f.Slots, j.held())
		}
		f = r.WithoutSlot(f, j.limit, j.now)
	}
}

// before returns the newest earlier run that is not IgnoredAsPrevious.
func (j *admission) before(r *run.Run) (found *run.Run) {
	for _, other := range j.runs {
		if other.Older(*r) && !other.IgnoredAsPrevious() {
			found = other
		}
	}
	return found
}

// end ends a random run that has started.
func (j *admission) end() {
	var begun []*run.Run
	for _, r := range j.runs {
		if r.State == run.ContainerCreating {
			begun = append(begun, r)
		}
	}
	if len(begun) > 0 {
		j.finish(rapid.SampledFrom(begun).Draw(j.T, "ends"), rapid.Bool().Draw(j.T, "succeeds"))
	}
}

func (j *admission) finish(r *run.Run, success bool) {
	r.Policy.Retry.MaxAttempts = 1
	j.apply(r, run.MachineRunning{Attempt: 1})
	j.apply(r, run.Reported{Attempt: 1, Report: run.Report{Digest: "d", Success: success, Outcome: run.OutcomeFailed, Error: "e"}})
	j.apply(r, run.Settled{})
	if !r.State.Terminal() {
		j.Fatalf("%s did not end: %s", r.ID, r.State)
	}
}

// settle processes everything that is due, like the handlers and the sweep.
func (j *admission) settle() {
	for busy := true; busy; {
		busy = false
		for _, r := range j.runs {
			switch {
			case r.State == run.Terminating:
				j.apply(r, run.Settled{})
			case checkDue(*r):
				j.evaluate(r)
				j.carryOut(r)
			case r.AwaitsAdmission():
				j.apply(r, run.Admitted{Pool: "p"})
			case r.Acting != nil && r.Acting.Waits && !r.Acting.NotBefore.IsZero() && !j.now.Before(r.Acting.NotBefore) && r.State == run.ActionRunning:
				r.Wait.Token = ""
				j.apply(r, run.Evaluated{Generation: r.Wait.Generation})
			default:
				continue
			}
			busy = true
		}
		if waiting := j.queue(); len(waiting) > 0 {
			busy = j.apply(waiting[0], run.JobGranted{Limit: waiting[0].JobLimit(j.limit)}) || busy
		}
	}
}

// passes reports whether the job's action passes over violations.
func (j *admission) passes() bool {
	return j.action.Type == spec.ActionWebhook || j.action.Type == spec.ActionTriggerJob
}

func (j *admission) check() {
	for _, r := range j.runs {
		if r.State == run.ContainerCreating && j.refused[r.ID] && !j.passes() {
			j.Fatalf("%s started, and its hook refused it", r.ID)
		}
		p := j.before(r)
		if r.State == run.ContainerCreating && j.previous && !j.passes() && p != nil && p.State != run.Completed {
			j.Fatalf("%s started after %s, which is %s", r.ID, p.ID, p.State)
		}
	}
	if waiting := j.queue(); len(waiting) > 0 {
		if most := waiting[0].JobLimit(j.limit); most == 0 || j.held() < most {
			j.Fatalf("%s waits while %d of %d slots are held", waiting[0].ID, j.held(), most)
		}
	}
	if j.action.Type == spec.ActionWait && !j.hooked && !j.previous {
		waits := ""
		for _, r := range j.runs {
			if waits != "" && r.State == run.ContainerCreating {
				j.Fatalf("%s overtook %s, which waits for a slot", r.ID, waits)
			}
			if r.AwaitsJobSlot() {
				waits = r.ID
			}
		}
	}
	if j.action.Type == spec.ActionKillOld && !j.hooked && !j.previous && len(j.runs) > 0 {
		if newest := j.runs[len(j.runs)-1]; newest.State == run.Cancelled {
			j.Fatalf("the newest run %s was replaced", newest.ID)
		}
	}
}

// checkDue reports whether the constraints of the run are due: before its first attempt, or
// during an action.
func checkDue(r run.Run) bool {
	return r.State == run.ConditionPending || r.State == run.ConditionRunning || r.ChecksAgain() || r.State == run.Pending && r.Slot.State == platform.SlotHeld
}
