package run_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// lived is a run after the facts, one a second.
func lived(t *testing.T, facts ...run.Fact) (r run.Run, now time.Time) {
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

// TestRule1TheSameFactDecidesTheSame, to the ids of its events, at the same time on
// the same record; and no decision changes the record that it is made on, nor
// another one.
func TestRule1TheSameFactDecidesTheSame(t *testing.T) {
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
			t.Fatalf("New made %s, and %s", text(first), text(again))
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
				t.Fatalf("%T made %s, %v, and %s, %v", fact, made, err, text(again), errAgain)
			case text(d) != made:
				t.Fatalf("%T made %s, and that is %s after %T", fact, made, text(d), other)
			case text(r) != before:
				t.Fatalf("%T and %T made %s of the record %s", fact, other, text(r), before)
			}
			if err == nil {
				r = d.Run
			}
		}
	})
}

// TestRule2ALateFactChangesNothing tells attempts that are over, in each way and
// however far their run is by then, what else may have happened to them.
func TestRule2ALateFactChangesNothing(t *testing.T) {
	t.Parallel()
	runs := []run.Fact{run.Admitted{Pool: "p", Limit: 1}, run.MachineCreated{Attempt: 1, MachineID: "m"}, run.MachineRunning{Attempt: 1}}
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
				r, now := lived(t, facts...)
				r.Execution.Pending = nil // what the execution's own facts show to be done
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

// TestRule3TheNewestEntryWins enters one state three times: a token of an entry
// that was left is never kept, and the newest of an entry is.
func TestRule3TheNewestEntryWins(t *testing.T) {
	t.Parallel()
	r, now := lived(t, run.Admitted{Pool: "p", Limit: 1})
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
			t.Errorf("the record has the token %q of entry %d, want %q", r.Wait.Token, r.Wait.Generation, token)
		}
	}
	var left []int
	for entry := range 3 {
		for _, generation := range left {
			if generation >= r.Wait.Generation {
				t.Errorf("entry %d has the generation %d, and one before has %d", entry+1, r.Wait.Generation, generation)
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

// TestRule4FactsOfAnotherAttemptChangeNothing tells a second attempt, from its
// intent to its end, what is true of the first or of one that never was.
func TestRule4FactsOfAnotherAttemptChangeNothing(t *testing.T) {
	t.Parallel()
	r, now := lived(t,
		run.Admitted{Pool: "p", Limit: 1}, run.MachineRunning{Attempt: 1}, run.MachineGone{Attempt: 1}, run.Settled{},
	)
	others := func(attempt int) []run.Fact {
		return []run.Fact{
			run.MachineCreated{Attempt: attempt, MachineID: "another"},
			run.MachineRunning{Attempt: attempt},
			run.StartRefused{Attempt: attempt, Fault: fault.New(fault.LaunchRefused, "no")},
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
		run.MachineCreated{Attempt: 2, MachineID: "m2"},
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
			continue // it has the number of the first still
		}
		for _, f := range append(others(1), others(3)...) {
			if d, err := run.Decide(r, f, now); d.Changed || err != nil && fault.Of(err).Code == fault.Internal {
				t.Errorf("%+v on %s of attempt %d: %s, %v", f, r.State, r.Attempt.Number, d.Run.State, err)
			}
		}
	}
	if r.State != run.Cancelled || r.Attempt.Number != 2 {
		t.Errorf("it is %s in attempt %d", r.State, r.Attempt.Number)
	}
}

// TestRule8ASilenceThatMayBeOursStartsAnew: Running is entered again with the
// whole limit, however long nobody was heard.
func TestRule8ASilenceThatMayBeOursStartsAnew(t *testing.T) {
	t.Parallel()
	r, now := lived(t, run.Admitted{Pool: "p", Limit: 1}, run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true})
	heard := now
	for _, silence := range []time.Duration{time.Second, time.Minute, 89 * time.Second, 90 * time.Second, 40 * time.Minute} {
		now = heard.Add(silence)
		d, err := run.Decide(r, run.Evaluated{Generation: r.Wait.Generation, LastContactAt: heard, ReceptionSince: heard, ReceptionUnknown: true}, now)
		if err != nil {
			t.Fatal(err)
		}
		route := run.RouteOf(d.Run, now)
		if limit := int(r.Policy.HeartbeatTimeout / time.Second); route.Next != run.StepRunning || route.HeartbeatSeconds != limit {
			t.Errorf("after %s it goes to %s with %d s, want %d s", silence, route.Next, route.HeartbeatSeconds, limit)
		}
	}
}

// TestRule9NothingLeavesAnEnd holds every end to be the last, whatever is told
// afterwards.
func TestRule9NothingLeavesAnEnd(t *testing.T) {
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
			t.Fatalf("it is %s", ended.State)
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
				t.Fatalf("%T made %s of %s", fact, d.Run.State, ended.State)
			}
			for _, e := range d.Events {
				if e.From != e.State {
					t.Fatalf("%T told an end again: %s", fact, e.Type)
				}
			}
			r = d.Run
		}
	})
}

// TestRule12EveryTaskFindsACancel that was committed before what it has to commit:
// that changes nothing, and its execution is sent to the end.
func TestRule12EveryTaskFindsACancel(t *testing.T) {
	t.Parallel()
	admitted, violated := run.Admitted{Pool: "p", Limit: 1}, run.Checked{Violations: []string{"x"}}
	for name, row := range map[string]struct {
		constrained bool
		before      []run.Fact
		task        run.Fact
	}{
		"admitted":                {task: admitted},
		"admitted, with a check":  {constrained: true, task: admitted},
		"lined up":                {task: run.Enqueued{Pool: "p", Limit: 1}},
		"granted":                 {before: []run.Fact{run.Enqueued{Pool: "p", Limit: 1}}, task: run.Granted{Limit: 1}},
		"granted, with a check":   {constrained: true, before: []run.Fact{run.Enqueued{Pool: "p", Limit: 1}}, task: run.Granted{Limit: 1}},
		"checked":                 {constrained: true, before: []run.Fact{admitted}, task: run.Checked{}},
		"checked, with an action": {constrained: true, before: []run.Fact{admitted}, task: violated},
		"acted":                   {constrained: true, before: []run.Fact{admitted, violated}, task: run.Acted{}},
		"woken": {
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
			first.Constrained = row.constrained
			r, now := run.New(first, epoch).Run, epoch.Add(time.Hour)
			for _, f := range append(row.before, run.CancelRequested{}, row.task) {
				d, err := run.Decide(r, f, now)
				if err != nil {
					t.Fatalf("%T on %s: %v", f, r.State, err)
				}
				r = d.Run
			}
			if next := run.RouteOf(r, now).Next; r.State != run.Cancelled || next != run.StepCancelled || r.Slot.State != "" {
				t.Errorf("it is %s with a slot that is %q, and goes to %s", r.State, r.Slot.State, next)
			}
		})
	}
}
