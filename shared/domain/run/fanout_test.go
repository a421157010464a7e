package run_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// fanned returns a run with children whose attempt begins, after the facts.
func fanned(t *testing.T, children fan.Spec, facts ...run.Fact) run.Run {
	t.Helper()
	r := run.New(run.Run{
		Tenant: "t", ID: "pages:1", TaskID: "job_1", JobID: "pages", Work: spec.Work{Kind: spec.KindJob, Program: &spec.Program{}, Fan: &children},
		Policy: spec.Policy{StartTimeout: time.Hour, TimeLimit: time.Minute, RecordRetention: time.Second, Retry: spec.Retry{MaxAttempts: 3}},
	}, epoch).Run
	return decideAll(t, r, append([]run.Fact{run.Admitted{Pool: "default"}}, facts...)...)
}

func decideAll(t *testing.T, r run.Run, facts ...run.Fact) run.Run {
	t.Helper()
	for _, f := range facts {
		d, err := run.Decide(r, f, epoch)
		if err != nil {
			t.Fatalf("%T: %v", f, err)
		}
		r = d.Run
	}
	return r
}

func ends(end fan.End, numbers ...int) run.ChildrenEnded {
	var f run.ChildrenEnded
	for _, n := range numbers {
		f.Ends = append(f.Ends, fan.ChildEnd{Number: n, End: end})
	}
	return f
}

func TestParentEndsWithItsChildren(t *testing.T) {
	t.Parallel()
	begun := run.FanBegun{Attempt: 1, Total: 3, List: "digest"}
	for name, row := range map[string]struct {
		spec  fan.Spec
		facts []run.Fact
		state run.State
		code  fault.Code
	}{
		"all succeed":          {fan.Spec{Parallel: 2}, []run.Fact{begun, ends(fan.Succeeded, 0, 1), ends(fan.Succeeded, 2)}, run.Completed, ""},
		"no items":             {fan.Spec{Parallel: 2}, []run.Fact{run.FanBegun{Attempt: 1}}, run.Completed, ""},
		"a failure":            {fan.Spec{Parallel: 2}, []run.Fact{begun, ends(fan.Failed, 1), ends(fan.Succeeded, 0)}, run.Failed, fault.ChildrenFailed},
		"an allowed failure":   {fan.Spec{Parallel: 2, MaxFailures: 1}, []run.Fact{begun, ends(fan.Failed, 1), ends(fan.Succeeded, 0, 2)}, run.Completed, ""},
		"a cancelled child":    {fan.Spec{Parallel: 3}, []run.Fact{begun, ends(fan.Cancelled, 1), ends(fan.Succeeded, 0, 2)}, run.Failed, fault.ChildrenFailed},
		"cancelled":            {fan.Spec{Parallel: 2}, []run.Fact{begun, run.CancelRequested{By: "me"}, ends(fan.Cancelled, 0, 1)}, run.Cancelled, fault.Cancelled},
		"cancelled at the end": {fan.Spec{Parallel: 3}, []run.Fact{begun, ends(fan.Succeeded, 0, 1, 2), run.CancelRequested{By: "me"}}, run.Completed, ""},
		"invalid items":        {fan.Spec{Parallel: 2}, []run.Fact{run.FanFailed{Attempt: 1, Fault: fault.New(fault.ItemsInvalid, "no list")}}, run.Failed, fault.ItemsInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fanned(t, row.spec, row.facts...)
			if r.State != run.Terminating {
				t.Fatalf("got %s, want Terminating after the last child", r.State)
			}
			results := &run.Output{Upload: run.Upload{Key: "k"}}
			r = decideAll(t, r, run.Settled{Output: results})
			switch {
			case r.State != row.state:
				t.Errorf("got %s, want %s", r.State, row.state)
			case row.code != "" && (r.Fault == nil || r.Fault.Code != row.code):
				t.Errorf("got fault %v, want %s", r.Fault, row.code)
			case r.Output == nil || r.Output.Key != "k":
				t.Errorf("got output %+v, want the results", r.Output)
			}
		})
	}
}

func TestParentCountsEachEndOnce(t *testing.T) {
	t.Parallel()
	r := fanned(t, fan.Spec{Parallel: 2}, run.FanBegun{Attempt: 1, Total: 4}, ends(fan.Succeeded, 0), ends(fan.Succeeded, 0), ends(fan.Failed, 0))
	if c := r.Fan.Counts(); c.Succeeded != 1 || c.Failed != 0 || c.Running != 2 || c.Waiting != 1 {
		t.Errorf("got %+v", c)
	}
	d, err := run.Decide(r, ends(fan.Succeeded, 0, 3), epoch)
	if err != nil || d.Changed {
		t.Errorf("got changed %v, %v after ends of children that are not active", d.Changed, err)
	}
}

func TestStoppedParentReconcilesItsChildren(t *testing.T) {
	t.Parallel()
	reconciles := func(d run.Decision, err error) bool {
		return err == nil && slices.ContainsFunc(d.Effects, func(e run.Effect) bool { return e.Kind == run.EffectChildren }) && len(d.Run.Execution.Pending) == 0
	}
	begun := run.FanBegun{Attempt: 1, Total: 4}
	r := fanned(t, fan.Spec{Parallel: 2}, begun)
	if d, err := run.Decide(r, run.CancelRequested{By: "me"}, epoch); !reconciles(d, err) || d.Run.State != run.Running {
		t.Errorf("got %+v, %v after a cancel request", d.Effects, err)
	}
	if d, err := run.Decide(r, ends(fan.Failed, 0), epoch); err != nil || len(d.Effects) != 0 {
		t.Errorf("got effects %+v, %v after a failure, want the other child to run on", d.Effects, err)
	}
	fast := fanned(t, fan.Spec{Parallel: 2, FailFast: true}, begun)
	if d, err := run.Decide(fast, ends(fan.Failed, 0), epoch); !reconciles(d, err) {
		t.Errorf("got %+v, %v after a failure with failFast", d.Effects, err)
	}
	r.Policy.Deadline = time.Hour
	late, err := run.Decide(r, run.Evaluated{Generation: r.Wait.Generation}, epoch.Add(2*time.Hour))
	if !reconciles(late, err) || late.Run.Fan.Stopped != fan.StopDeadline || late.Run.State != run.Running {
		t.Errorf("got %+v, %v at the deadline", late.Run.Fan, err)
	}
	over := decideAll(t, late.Run, ends(fan.Cancelled, 0, 1))
	if over.Fault == nil || over.Fault.Code != fault.DeadlineExceeded {
		t.Errorf("got %v, want the deadline", over.Fault)
	}
}

// TestParentIsCheckedAgain: the check of a parent has a time of its own, which other commits do not
// move.
func TestParentIsCheckedAgain(t *testing.T) {
	t.Parallel()
	r := fanned(t, fan.Spec{Parallel: 2}, run.FanBegun{Attempt: 1, Total: 9})
	due := r.Fan.CheckBy
	r.Execution.Pending = nil
	d, err := run.Decide(r, ends(fan.Succeeded, 0), epoch.Add(time.Second))
	if err != nil || !d.Run.Execution.ActBy.Equal(due) {
		t.Errorf("got a check at %s, %v, want %s", d.Run.Execution.ActBy, err, due)
	}
	d, err = run.Decide(d.Run, run.ChildrenEnded{Verified: 3}, epoch.Add(time.Minute))
	if err != nil || !d.Run.Fan.CheckBy.Equal(due.Add(time.Minute)) || d.Run.Fan.Verified != 3 {
		t.Errorf("got %+v, %v after a check", d.Run.Fan, err)
	}
	if again := decideAll(t, r, run.Abandoned{Generation: r.Wait.Generation, Message: "lost"}, run.Settled{}); again.State != run.Retrying {
		t.Errorf("got %s after a lost execution, want a further attempt while children run", again.State)
	}
}

func TestChildHasTheWorkOfItsParent(t *testing.T) {
	t.Parallel()
	r := fanned(t, fan.Spec{Parallel: 2})
	r.Work.Program = &spec.Program{Command: []string{"{{item}}/{{itemIndex}}/{{matrix.a}}/{{runId}}/{{event.id}}"}}
	r.Policy.Deadline, r.Event = time.Hour, &sensor.Event{ID: "e"}
	r.Followers, r.Actions, r.Constraints = []string{"next"}, &spec.Actions{}, &spec.Constraints{MaxConcurrentRuns: 1}
	child := r.ChildOf(7, fan.Item{Text: "x", Index: 12, Matrix: map[string]string{"a": "b"}}, epoch.Add(time.Minute-time.Millisecond)) // a deadline in whole seconds, so that the child can be retried
	if got := child.Expanded().Command[0]; got != "x/12/b/pages:1.7/e" {
		t.Errorf("got command %s", got)
	}
	switch {
	case child.FansOut() || child.Followers != nil || child.Actions != nil || child.Constraints != nil:
		t.Errorf("got %+v, want no children, actions or constraints", child)
	case child.Policy.Deadline != 59*time.Minute:
		t.Errorf("got a deadline of %s, want that of the parent", child.Policy.Deadline)
	case child.Policy.RecordRetention < 24*time.Hour:
		t.Errorf("got a retention of %s, want at least a day", child.Policy.RecordRetention)
	case child.TaskID != r.ChildOf(7, fan.Item{}, epoch).TaskID:
		t.Error("the task id of a child changes")
	}
	if limited := decideAll(t, decideAll(t, run.New(child, epoch).Run, run.Admitted{Pool: "default"}), run.JobLimited{}); limited.JobSlot.Pool != "" {
		t.Errorf("got slot %+v of the job for a child", limited.JobSlot)
	}
	ended := child
	ended.State = run.Completed
	if _, counts := ended.Result(); counts {
		t.Error("the end of a child is the last result of its job")
	}
	if again := child.ForRetry(); again.Child == nil || again.Child.Parent != "" || again.Child.Item.Index != 12 {
		t.Errorf("got %+v, want the item without the parent", again.Child)
	}
}
