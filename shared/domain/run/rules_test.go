package run_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// after returns a run after the facts, one per second.
func after(t *testing.T, facts ...run.Fact) (r run.Run, now time.Time) {
	t.Helper()
	r, now = run.New(fresh(), epoch).Run, epoch
	for _, f := range facts {
		now = now.Add(time.Second)
		d, err := run.Decide(r, f, now)
		if err != nil || !d.Changed {
			t.Fatalf("%T on %s: changed %v, %v", f, r.State, d.Changed, err)
		}
		r = d.Run
	}
	return r, now
}

// TestDecideIsPure verifies rule 1: the same fact about the same record at the
// same time yields the same decision, including event ids, and no decision
// changes its record or another one.
func TestDecideIsPure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := func(v any) string {
			doc, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(doc)
		}
		now := epoch
		first := run.New(fresh(), now)
		if again := run.New(fresh(), now); text(again) != text(first) {
			t.Fatalf("New: got %s and %s", text(first), text(again))
		}
		r := first.Run
		for range rapid.IntRange(1, 20).Draw(t, "facts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "seconds")) * time.Second)
			fact, other := anyFact(t, r), anyFact(t, r)
			before := text(r)
			d, err := run.Decide(r, fact, now)
			made := text(d)
			_, _ = run.Decide(r, other, now)
			again, errAgain := run.Decide(r, fact, now)
			switch {
			case text(again) != made || fmt.Sprint(errAgain) != fmt.Sprint(err):
				t.Fatalf("%T: got %s, %v and %s, %v", fact, made, err, text(again), errAgain)
			case text(d) != made:
				t.Fatalf("%T: decision %s is %s after %T", fact, made, text(d), other)
			case text(r) != before:
				t.Fatalf("%T and %T: got %s from the record %s", fact, other, text(r), before)
			}
			if err == nil {
				r = d.Run
			}
		}
	})
}

// TestLateFactChangesNothing verifies rule 2: it applies every fact to attempts that ended in
// each possible way, in every later state of their run.
func TestLateFactChangesNothing(t *testing.T) {
	t.Parallel()
	runs := []run.Fact{run.Admitted{Pool: "p", Limit: 1}, run.MachineCreated{Attempt: 1, Machine: platform.Machine{ID: "m"}}, run.MachineRunning{Attempt: 1}}
	over := map[string][]run.Fact{
		"reported":  {run.Reported{Attempt: 1, Report: run.Report{Digest: "first", Success: true}}},
		"cancelled": {run.CancelRequested{}, run.MachineGone{Attempt: 1}},
		"lost":      {run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 1}}},
	}
	late := []run.Fact{
		run.Reported{Attempt: 1, Report: run.Report{Digest: "late", Success: true}},
		run.Reported{Attempt: 1, Report: run.Report{Digest: "later", Error: "it says"}},
		run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true, HandlesSigterm: true},
		run.WorkerContacted{Attempt: 1, WorkerID: "w", Missing: true},
		run.CancelDelivered{Attempt: 1},
		run.MachineRunning{Attempt: 1},
		run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 137, OOM: true}},
		run.StartRefused{Attempt: 1, Fault: fault.New(fault.Capacity, "no room")},
		run.Granted{Limit: 1},
		run.Admitted{Pool: "p", Limit: 1},
		run.TokenStored{Step: run.StepRunning, Generation: 2, Token: "old"},
		run.Evaluated{Phase: run.PhaseGone, Exit: &run.Exit{Code: 1}},
	}
	for way, end := range over {
		for _, settled := range []bool{false, true} {
			t.Run(fmt.Sprint(way, ", settled ", settled), func(t *testing.T) {
				t.Parallel()
				facts := append(append([]run.Fact(nil), runs...), end...)
				if settled {
					facts = append(facts, run.Settled{}, run.ExecutionChecked{Done: true})
				}
				r, now := after(t, facts...)
				r.Execution.Pending = nil // cleared by facts of the execution
				for _, f := range late {
					d, err := run.Decide(r, f, now.Add(time.Hour))
					if d.Changed || err != nil && fault.Of(err).Code == fault.Internal {
						t.Errorf("%T on %s: %s, %v\n%s", f, r.State, d.Run.State, err,
							cmp.Diff(r, d.Run, cmpopts.IgnoreUnexported(fault.Fault{})))
					}
				}
			})
		}
	}
}

// TestNewestTokenWins verifies rule 3: it enters one state three times. Tokens of earlier
// entries must not be stored; the newest token of an entry must be.
func TestNewestTokenWins(t *testing.T) {
	t.Parallel()
	r, now := after(t, run.Admitted{Pool: "p", Limit: 1})
	store := func(generation int, token string) {
		t.Helper()
		now = now.Add(time.Second)
		d, err := run.Decide(r, run.TokenStored{Step: run.StepContainerCreating, Generation: generation, Token: token}, now)
		if err != nil {
			t.Fatal(err)
		}
		r = d.Run
	}
	holds := func(token string) {
		t.Helper()
		if r.Wait.Token != token {
			t.Errorf("got token %q of entry %d, want %q", r.Wait.Token, r.Wait.Generation, token)
		}
	}
	var left []int
	for entry := range 3 {
		for _, generation := range left {
			if generation >= r.Wait.Generation {
				t.Errorf("entry %d: got generation %d, want more than %d", entry+1, r.Wait.Generation, generation)
			}
			store(generation, "late")
			holds("")
		}
		store(r.Wait.Generation, "first")
		store(r.Wait.Generation, "second")
		holds("second")
		for _, generation := range left {
			store(generation, "late")
			holds("second")
		}
		left = append(left, r.Wait.Generation)
		d, err := run.Decide(r, run.Evaluated{Generation: r.Wait.Generation}, now)
		if err != nil {
			t.Fatal(err)
		}
		r = d.Run
	}
}

// TestFactOfAnotherAttemptChangesNothing verifies rule 4: during a second attempt, from its
// intent to its end, it applies facts of the first attempt and of one that never existed.
func TestFactOfAnotherAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	r, now := after(t,
		run.Admitted{Pool: "p", Limit: 1}, run.MachineRunning{Attempt: 1}, run.MachineGone{Attempt: 1}, run.Settled{},
	)
	others := func(attempt int) []run.Fact {
		return []run.Fact{
			run.MachineCreated{Attempt: attempt, Machine: platform.Machine{ID: "another"}},
			run.MachineRunning{Attempt: attempt},
			run.StartRefused{Attempt: attempt, Fault: fault.New(fault.LaunchRefused, "no")},
			run.StartFailed{Attempt: attempt, Fault: fault.New(fault.Image, "no"), Gone: true},
			run.MachineGone{Attempt: attempt},
			run.MachineGone{Attempt: attempt, Exit: &run.Exit{Code: 1}},
			run.WorkerContacted{Attempt: attempt, WorkerID: "another", Started: true},
			run.WorkerContacted{Attempt: attempt, WorkerID: "another"},
			run.Reported{Attempt: attempt, Report: run.Report{Digest: "another", Success: true}},
			run.Reported{Attempt: attempt, WorkerID: "another", Report: run.Report{Digest: "another"}},
			run.CancelDelivered{Attempt: attempt},
		}
	}
	for _, f := range []run.Fact{
		run.Due{},
		run.Admitted{Pool: "p", Limit: 1},
		run.MachineCreated{Attempt: 2, Machine: platform.Machine{ID: "m2"}},
		run.MachineRunning{Attempt: 2},
		run.CancelRequested{},
		run.MachineGone{Attempt: 2},
		run.Settled{},
	} {
		now = now.Add(time.Minute)
		d, err := run.Decide(r, f, now)
		if err != nil || !d.Changed {
			t.Fatalf("%T on %s: changed %v, %v", f, r.State, d.Changed, err)
		}
		if r = d.Run; r.State == run.Pending {
			continue // the record still has the number of the first attempt
		}
		for _, f := range append(others(1), others(3)...) {
			if d, err := run.Decide(r, f, now); d.Changed || err != nil && fault.Of(err).Code == fault.Internal {
				t.Errorf("%+v on %s of attempt %d: got %s, %v", f, r.State, r.Attempt.Number, d.Run.State, err)
			}
		}
	}
	if r.State != run.Cancelled || r.Attempt.Number != 2 {
		t.Errorf("got %s in attempt %d", r.State, r.Attempt.Number)
	}
}

// TestUnknownReceptionRestartsHeartbeatLimit verifies rule 8: if the canary of an overdue
// heartbeat is not received, Running is entered again with the whole limit, however long the
// worker was silent.
func TestUnknownReceptionRestartsHeartbeatLimit(t *testing.T) {
	t.Parallel()
	r, now := after(t, run.Admitted{Pool: "p", Limit: 1}, run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true})
	contacted := now
	for _, silence := range []time.Duration{90 * time.Second, 91 * time.Second, 40 * time.Minute} {
		now = contacted.Add(silence)
		contact := run.Contact{LastAt: contacted, Reception: run.Reception{Since: contacted, Gap: time.Second}}
		d, err := run.Decide(r, run.Evaluated{Generation: r.Wait.Generation, Contact: contact}, now)
		if err != nil {
			t.Fatal(err)
		}
		route := run.RouteOf(d.Run, now)
		if limit := int(r.Policy.HeartbeatTimeout / time.Second); route.Next != run.StepRunning || route.HeartbeatSeconds != limit {
			t.Errorf("after %s: got next %s with %d s, want %d s", silence, route.Next, route.HeartbeatSeconds, limit)
		}
	}
}

// TestTerminalStateIsFinal verifies rule 9: no fact changes a run that has
// ended.
func TestTerminalStateIsFinal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		begun := []run.Fact{run.Admitted{Pool: "p", Limit: 1}, run.MachineRunning{Attempt: 1}}
		end := rapid.SampledFrom([][]run.Fact{
			{run.Reported{Attempt: 1, Report: run.Report{Digest: "a", Success: true}}, run.Settled{}},
			{run.Reported{Attempt: 1, Report: run.Report{Digest: "a", Error: "it says", Category: fault.DataQuality}}, run.Settled{}},
			{run.CancelRequested{}, run.MachineGone{Attempt: 1}, run.Settled{}},
			{run.Restarted{Start: 1}, run.Restarted{Start: 2}},
		}).Draw(t, "end")
		r, now := run.New(fresh(), epoch).Run, epoch
		for _, f := range append(begun, end...) {
			d, err := run.Decide(r, f, now)
			if err != nil {
				t.Fatal(err)
			}
			r = d.Run
		}
		ended := r
		if !ended.State.Terminal() {
			t.Fatalf("got %s", ended.State)
		}
		for range 20 {
			now = now.Add(time.Minute)
			fact := anyFact(t, r)
			d, err := run.Decide(r, fact, now)
			switch {
			case err != nil && fault.Of(err).Code == fault.Internal:
				t.Fatalf("%T on %s: %v", fact, r.State, err)
			case err != nil:
				continue
			case d.Run.State != ended.State || d.Run.EndedAt != ended.EndedAt || d.Run.Fault != ended.Fault:
				t.Fatalf("%T: got %s from %s", fact, d.Run.State, ended.State)
			}
			for _, e := range d.Events {
				if e.From != e.State {
					t.Fatalf("%T: got a second terminal event: %s", fact, e.Type)
				}
			}
			r = d.Run
		}
	})
}

// TestTaskFindsCancel verifies rule 12: a task whose commit comes after a
// cancel request changes nothing, and its execution is routed to the end.
func TestTaskFindsCancel(t *testing.T) {
	t.Parallel()
	admitted, violated := run.Admitted{Pool: "p", Limit: 1}, run.Checked{Violations: violated(spec.MaxConcurrentRuns)}
	for name, row := range map[string]struct {
		constrained bool
		before      []run.Fact
		task        run.Fact
	}{
		"admitted":                {task: admitted},
		"admitted, with a check":  {constrained: true, task: admitted},
		"enqueued":                {task: run.Enqueued{Pool: "p", Limit: 1}},
		"granted":                 {before: []run.Fact{run.Enqueued{Pool: "p", Limit: 1}}, task: run.Granted{Limit: 1}},
		"granted, with a check":   {constrained: true, before: []run.Fact{run.Enqueued{Pool: "p", Limit: 1}}, task: run.Granted{Limit: 1}},
		"checked":                 {constrained: true, before: []run.Fact{admitted}, task: run.Checked{}},
		"checked, with an action": {constrained: true, before: []run.Fact{admitted}, task: violated},
		"acted":                   {constrained: true, before: []run.Fact{admitted, violated}, task: run.ActionStarted{}},
		"action ended":            {constrained: true, before: []run.Fact{admitted, violated, run.ActionStarted{}}, task: run.ActionEnded{}},
		"job's slot granted": {
			constrained: true, before: []run.Fact{admitted, violated, run.ActionStarted{}, run.ActionEnded{}}, task: run.JobGranted{Limit: 2},
		},
		"admitted, after a wait": {
			constrained: true, before: []run.Fact{admitted, violated, run.ActionStarted{}, run.ActionEnded{}, run.JobGranted{Limit: 2}, run.Checked{}}, task: admitted,
		},
		"due": {
			before: []run.Fact{admitted, run.MachineRunning{Attempt: 1}, run.MachineGone{Attempt: 1}, run.Settled{}},
			task:   run.Due{},
		},
		"settled": {
			before: []run.Fact{admitted, run.MachineRunning{Attempt: 1}, run.MachineGone{Attempt: 1}},
			task:   run.Settled{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := fresh()
			if row.constrained {
				constrain(&first, spec.ActionWait)
			}
			r, now := run.New(first, epoch).Run, epoch.Add(time.Hour)
			for _, f := range append(row.before, run.CancelRequested{}, row.task) {
				d, err := run.Decide(r, f, now)
				if err != nil {
					t.Fatalf("%T on %s: %v", f, r.State, err)
				}
				r = d.Run
			}
			if next := run.RouteOf(r, now).Next; r.State != run.Cancelled || next != run.StepCancelled || r.Slot.State+r.JobSlot.State != "" {
				t.Errorf("got %s with slot %q and next %s", r.State, r.Slot.State, next)
			}
		})
	}
}
