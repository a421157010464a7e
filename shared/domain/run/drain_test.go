package run_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// drained returns the fact that the drain deadline of pool p has passed.
func drained() run.Fact {
	pool := platform.Pool{Tenant: "local", ID: "p", Limit: 1}.Drain(epoch.Add(time.Minute), "ann", epoch)
	return run.Drained{Pool: pool}
}

// TestEvictedAttemptDoesNotCount ends evicted attempts in each possible way.
func TestEvictedAttemptDoesNotCount(t *testing.T) {
	t.Parallel()
	started := []run.Fact{run.Admitted{Pool: "p", Limit: 1}, run.MachineRunning{Attempt: 1}}
	contacted := append(started, run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true, HandlesSigterm: true}) //nolint:gocritic // another list
	stopped := run.TokenStored{Step: run.StepCancelling, Token: "t"}
	report := func(r run.Report) run.Fact { r.Digest = "d"; return run.Reported{Attempt: 1, WorkerID: "w", Report: r} }
	byExit := func(r *run.Run) { r.Work.Program = &spec.Program{Completion: spec.CompletionExit} }
	for name, row := range map[string]struct {
		change        func(r *run.Run)
		before, after []run.Fact
		state         run.State
		code          fault.Code
		outcome       run.Outcome
	}{
		"before the start":       {nil, started[:1], nil, run.Retrying, fault.PoolDrained, run.OutcomeFailed},
		"reported cancel":        {nil, contacted, []run.Fact{report(run.Report{Outcome: run.OutcomeCancelled})}, run.Retrying, fault.PoolDrained, run.OutcomeCancelled},
		"reported failure":       {nil, contacted, []run.Fact{report(run.Report{Error: "broken"})}, run.Retrying, fault.PoolDrained, run.OutcomeCancelled},
		"reported success":       {nil, contacted, []run.Fact{report(run.Report{Success: true})}, run.Completed, "", run.OutcomeSucceeded},
		"exit after SIGTERM":     {byExit, started, []run.Fact{stopped, run.MachineGone{Attempt: 1, Exit: &run.Exit{}}}, run.Retrying, fault.PoolDrained, run.OutcomeCancelled},
		"exit before SIGTERM":    {byExit, contactedWithoutSigterm(started), []run.Fact{run.MachineGone{Attempt: 1, Exit: &run.Exit{}}}, run.Completed, "", run.OutcomeSucceeded},
		"lost machine":           {nil, started, []run.Fact{run.MachineGone{Attempt: 1}}, run.Retrying, fault.PoolDrained, run.OutcomeCancelled},
		"killed after its grace": {nil, started, []run.Fact{stopped, run.Evaluated{}}, run.Retrying, fault.PoolDrained, run.OutcomeFailed},
		"cancelled meanwhile":    {nil, contacted, []run.Fact{run.CancelRequested{By: "x"}, report(run.Report{Success: true})}, run.Cancelled, fault.Cancelled, run.OutcomeCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := fresh()
			first.Policy.Retry.MaxAttempts, first.Policy.Retry.MaxFurtherStarts = 1, 0
			if row.change != nil {
				row.change(&first)
			}
			r, now := run.New(first, epoch).Run, epoch
			play := func(f run.Fact) {
				t.Helper()
				if s, ok := f.(run.TokenStored); ok {
					s.Generation = r.Wait.Generation
					f = s
				}
				if e, ok := f.(run.Evaluated); ok {
					e.Generation = r.Wait.Generation
					f, now = e, now.Add(r.Policy.CancelGrace)
				}
				now = now.Add(time.Second)
				d, err := run.Decide(r, f, now)
				if err != nil {
					t.Fatal(err)
				}
				if !d.Changed {
					t.Fatalf("%T changes nothing in %s", f, r.State)
				}
				r = d.Run
			}
			for _, f := range row.before {
				play(f)
			}
			play(drained())
			if r.Cancel != nil || r.EndRequest() == nil || r.EndRequest().By != "ann" {
				t.Errorf("got the cancel request %+v and the end request %+v, want the latter", r.Cancel, r.EndRequest())
			}
			if again, err := run.Decide(r, drained(), now); err != nil || again.Changed {
				t.Errorf("got a change by a repeated drain (%v), want none", err)
			}
			for _, f := range row.after {
				play(f)
			}
			if r.Attempt.Outcome != row.outcome {
				t.Errorf("got the outcome %s, want %s", r.Attempt.Outcome, row.outcome)
			}
			play(run.Settled{})
			if r.State != row.state || row.code != "" && (r.Fault == nil || r.Fault.Code != row.code) {
				t.Errorf("got %s with %v, want %s with %s", r.State, r.Fault, row.state, row.code)
			}
			if r.Spent != (run.Spent{}) {
				t.Errorf("got the spent budgets %+v, want none", r.Spent)
			}
			if r.State != run.Retrying {
				return
			}
			if r.RetryAt.After(now) || r.NextPool() != "p" {
				t.Errorf("got the next attempt at %s in pool %s, want it at once in p", r.RetryAt, r.NextPool())
			}
			play(run.Due{})
			play(run.Admitted{Pool: "p", Limit: 1})
			if r.Attempt.Number != 2 || r.EndRequest() != nil {
				t.Errorf("got attempt %d with the end request %+v, want a second one without", r.Attempt.Number, r.EndRequest())
			}
		})
	}
}

// contactedWithoutSigterm returns the facts of a worker that receives the request with the
// response to a call before SIGTERM.
func contactedWithoutSigterm(started []run.Fact) []run.Fact {
	return append(slices.Clip(started), run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true})
}

// TestDrainLeavesOtherRuns applies a drain to runs that it must not change.
func TestDrainLeavesOtherRuns(t *testing.T) {
	t.Parallel()
	for name, facts := range map[string][]run.Fact{
		"queued":       {run.Enqueued{Pool: "p", Limit: 1}},
		"another pool": {run.Admitted{Pool: "q", Limit: 1}, run.MachineRunning{Attempt: 1}},
		"cancelled":    {run.Admitted{Pool: "p", Limit: 1}, run.MachineRunning{Attempt: 1}, run.CancelRequested{By: "x"}},
		"ended":        {run.Admitted{Pool: "p", Limit: 1}, run.MachineRunning{Attempt: 1}, run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 1}}},
	} {
		r := run.New(fresh(), epoch).Run
		for _, f := range facts {
			d, err := run.Decide(r, f, epoch)
			if err != nil {
				t.Fatal(err)
			}
			r = d.Run
		}
		if d, err := run.Decide(r, drained(), epoch); err != nil || d.Changed {
			t.Errorf("%s: got a change (%v), want none", name, err)
		}
	}
}
