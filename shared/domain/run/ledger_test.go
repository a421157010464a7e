package run_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/domain/usage"
)

func anyAmount(t *rapid.T, name string) budget.Amount {
	n := func(part string) int64 { return rapid.Int64Range(0, 50).Draw(t, name+" "+part) }
	return budget.Amount{Turns: n("turns"), Tokens: n("tokens"), TimeMS: n("time"), CostNano: n("cost")}
}

// TestLedgerFollowsReservations decides random facts about a run whose attempts reserve. At
// each time the ledger changes must add up to what the run holds and has used. A run that has
// ended must hold nothing. An attempt must be charged once, with its known usage, and all
// attempts together with at most the amount held for the first.
func TestLedgerFollowsReservations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := epoch
		first := fresh()
		scopes := []string{"tenant", "project:p", "session:s"}
		most := anyAmount(t, "first")
		first.Reservation = (run.Reservation{Scopes: scopes}).Renewed(most)
		d := run.New(first, now)
		r, account := d.Run, budget.Account{}
		post := func(fact any, c *budget.Change) {
			for _, m := range c.Moves("acme") {
				if m.Scope == "tenant" {
					account, _ = m.Apply(account)
				}
			}
			if account.Held != r.Reservation.Held || account.Spent != r.Reservation.Used {
				t.Fatalf("%T on %s: got account %+v, want %+v", fact, r.State, account, r.Reservation)
			}
		}
		post(nil, d.Ledger)
		for range rapid.IntRange(1, 60).Draw(t, "facts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "seconds")) * time.Second)
			if rapid.IntRange(0, 3).Draw(t, "note") == 0 {
				r.Reservation = r.Reservation.Noted(anyAmount(t, "known"))
			}
			before := *r.Reservation
			fact := anyFact(t, r)
			d, err := run.Decide(r, fact, now)
			if err != nil {
				continue
			}
			if d.Ledger != nil && !d.Changed {
				t.Fatalf("%T on %s: got a ledger change without a change", fact, r.State)
			}
			was := r.State
			r = d.Run
			post(fact, d.Ledger)
			after := *r.Reservation
			switch charged := after.Used.Minus(before.Used); {
			case r.State.Terminal() && !after.Held.Zero():
				t.Fatalf("%T: %s with the reservation %+v", fact, r.State, after)
			case was == run.Terminating && r.State != run.Terminating && !before.Held.Zero() && !after.Known.Zero():
				t.Fatalf("%T: %s with %+v, which is not charged", fact, r.State, after)
			case !before.Held.Zero() && after.Known.Zero() && charged != before.Known.Within(before.Held):
				t.Fatalf("%T: got %+v charged of %+v", fact, charged, before)
			case after.Known == before.Known && !after.Known.Zero() && !charged.Zero():
				t.Fatalf("%T: got %+v charged, which is still to be charged", fact, charged)
			}
			if total := after.Held.Plus(after.Used); total.Turns > most.Turns || total.Tokens > most.Tokens || total.CostNano > most.CostNano {
				t.Fatalf("%T: got %+v of the %+v that were held", fact, after, most)
			}
		}
	})
}

// TestFailedAttemptLeavesTheRest charges attempts that have used something; the last one ends
// with the run.
func TestFailedAttemptLeavesTheRest(t *testing.T) {
	t.Parallel()
	held := budget.Amount{Turns: 1, Tokens: 100, TimeMS: 1000, CostNano: 500}
	r := run.Reservation{Scopes: []string{"tenant"}}.Renewed(held)
	if again := r.Noted(budget.Amount{Tokens: 3}).Noted(budget.Amount{Tokens: 7, TimeMS: 10}); again.Settled().Used != (budget.Amount{Tokens: 7, TimeMS: 10}) {
		t.Errorf("got %+v charged, want what was known last", again.Settled())
	}
	lost := r.Settled()
	if !lost.Used.Zero() || !lost.Held.Zero() {
		t.Errorf("got %+v of an attempt without a known use, want nothing", lost)
	}
	over := r.Noted(budget.Amount{Turns: 2, Tokens: 200, TimeMS: 1200, CostNano: 900}).Settled()
	if want := (budget.Amount{Turns: 1, Tokens: 100, TimeMS: 1200, CostNano: 500}); over.Used != want || !over.Known.Zero() {
		t.Errorf("got %+v, want %+v: all that was held, and the measured time", over, want)
	}
	if late := over.Noted(held); late != over {
		t.Errorf("got %+v noted in a reservation that has ended", late)
	}
}

// TestAttemptIsChargedForItself: the work of an engine is charged once, with its attempt, and
// is not counted for the next one.
func TestAttemptIsChargedForItself(t *testing.T) {
	t.Parallel()
	first := fresh()
	first.Work = spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{Model: "m", Workload: "completion", Request: json.RawMessage(`{}`), MaxTokens: 9, Within: time.Hour}}
	first.Policy.Retry.MaxAttempts = 3
	first.Reservation = (run.Reservation{Scopes: []string{"tenant"}}).Renewed(budget.Amount{Turns: 1, Tokens: 100, TimeMS: 100_000})
	r := run.New(first, epoch).Run
	for _, fact := range []run.Fact{
		run.Admitted{Pool: "pool0", Limit: 1},
		run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true},
		run.GenerationEnded{Attempt: 1, Fault: fault.New(fault.PoolUnavailable, "it failed"), Generation: &run.Generation{DecodeMS: 7000}},
		run.GenerationSettled{Attempt: 1},
		run.Due{},
		run.Admitted{Pool: "pool0", Limit: 1},
	} {
		d, err := run.Decide(r, fact, epoch.Add(time.Minute))
		if err != nil {
			t.Fatalf("%T: %v", fact, err)
		}
		r = d.Run
	}
	if r.State != run.ContainerCreating || r.Attempt.Number != 2 || r.Reservation.Used.TimeMS != 7000 || r.Generation != nil {
		t.Errorf("got %s in attempt %d with %+v and %+v, want a second attempt that nothing is known of, and 7 s charged", r.State, r.Attempt.Number, r.Reservation, r.Generation)
	}
}

// TestUseOfAGeneration: the tokens of a prompt count only if they have a price, and a turn only
// for an answer.
func TestUseOfAGeneration(t *testing.T) {
	t.Parallel()
	answer := run.Generation{TokensIn: 100, TokensOut: 7, DecodeMS: 1500, Finish: "stop"}
	for name, row := range map[string]struct {
		of         run.Reservation
		generation run.Generation
		used, most budget.Amount
	}{
		"output":   {run.Reservation{Prices: usage.Prices{OutputPrice: 2}}, answer, budget.Amount{Turns: 1, Tokens: 7, TimeMS: 1500, CostNano: 14}, budget.Amount{Turns: 1, Tokens: 110, TimeMS: 60_000, CostNano: 20}},
		"both":     {run.Reservation{Prices: usage.Prices{InputPrice: 500, OutputPrice: 1500}}, answer, budget.Amount{Turns: 1, Tokens: 107, TimeMS: 1500, CostNano: 60_500}, budget.Amount{Turns: 1, Tokens: 110, TimeMS: 60_000, CostNano: 65_000}},
		"cached":   {run.Reservation{Prices: usage.Prices{InputPrice: 500, CachedPrice: new(int64(50)), OutputPrice: 1500}}, run.Generation{TokensIn: 100, CachedTokens: 60, TokensOut: 7, DecodeMS: 1500, Finish: "stop"}, budget.Amount{Turns: 1, Tokens: 107, TimeMS: 1500, CostNano: 33_500}, budget.Amount{Turns: 1, Tokens: 110, TimeMS: 60_000, CostNano: 65_000}},
		"too many": {run.Reservation{Prices: usage.Prices{InputPrice: 500, CachedPrice: new(int64(0))}}, run.Generation{TokensIn: 100, CachedTokens: 160, TokensOut: 7, Finish: "stop"}, budget.Amount{Turns: 1, Tokens: 107}, budget.Amount{Turns: 1, Tokens: 110, TimeMS: 60_000, CostNano: 50_000}},
		"free":     {run.Reservation{}, answer, budget.Amount{Turns: 1, Tokens: 7, TimeMS: 1500}, budget.Amount{Turns: 1, Tokens: 110, TimeMS: 60_000}},
		"nothing":  {run.Reservation{Prices: usage.Prices{InputPrice: 1}}, run.Generation{TokensIn: 100, DecodeMS: 9}, budget.Amount{TimeMS: 9}, budget.Amount{Turns: 1, Tokens: 110, TimeMS: 60_000, CostNano: 100}},
		"broken":   {run.Reservation{Prices: usage.Prices{OutputPrice: 1}}, run.Generation{TokensOut: 2}, budget.Amount{Turns: 1, Tokens: 2, CostNano: 2}, budget.Amount{Turns: 1, Tokens: 110, TimeMS: 60_000, CostNano: 10}},
	} {
		if got := row.of.Use(row.generation); got != row.used {
			t.Errorf("%s: got use %+v, want %+v", name, got, row.used)
		}
		if got := row.of.Most(100, 10, time.Minute); got != row.most {
			t.Errorf("%s: got at most %+v, want %+v", name, got, row.most)
		}
	}
}

// TestCancelReleasesTheReservation checks the accounts and amounts of the change.
func TestCancelReleasesTheReservation(t *testing.T) {
	t.Parallel()
	held := budget.Amount{Turns: 1, Tokens: 500}
	first := fresh()
	first.Reservation = (run.Reservation{Scopes: []string{"tenant"}}).Renewed(held)
	d := run.New(first, epoch)
	if d.Ledger == nil || d.Ledger.Hold != held || !d.Ledger.Release.Zero() {
		t.Fatalf("got ledger %+v of a new run, want a hold of %+v", d.Ledger, held)
	}
	d, err := run.Decide(d.Run, run.CancelRequested{By: "x"}, epoch.Add(time.Second))
	if err != nil || d.Ledger == nil || d.Ledger.Release != held || !d.Ledger.Hold.Zero() || !d.Ledger.Spend.Zero() || !d.Ledger.At.Equal(epoch.Add(time.Second)) {
		t.Fatalf("got ledger %+v (%v) of the cancelled run, want a release of %+v", d.Ledger, err, held)
	}
	plain := run.New(fresh(), epoch)
	if d, err = run.Decide(plain.Run, run.CancelRequested{By: "x"}, epoch); err != nil || plain.Ledger != nil || d.Ledger != nil {
		t.Errorf("got ledger changes %+v, %+v (%v) of a run without a reservation", plain.Ledger, d.Ledger, err)
	}
}

// TestTokensAreThoseOfTheStream: tokens that the dispatcher received but could not append to
// the stream are not counted, because no reader received them.
func TestTokensAreThoseOfTheStream(t *testing.T) {
	t.Parallel()
	stream, engine := run.Generation{TokensOut: 9, DecodeMS: 10}, run.Generation{Replica: "r1", TokensIn: 4, TokensOut: 35, DecodeMS: 20}
	want := run.Generation{Replica: "r1", TokensIn: 4, TokensOut: 9, DecodeMS: 20}
	if got := stream.Merged(&engine); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestUsageFollowsTheLedger ends an inference task after a failed attempt. The charges of its
// commits must add up to what its account has spent, and to the tokens of its answer.
func TestUsageFollowsTheLedger(t *testing.T) {
	t.Parallel()
	first := fresh()
	first.Work = spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{Model: "m", Workload: "completion", SessionID: "s", Request: json.RawMessage(`{}`), MaxTokens: 9, Within: time.Hour}}
	first.Policy.Retry.MaxAttempts = 3
	first.Reservation = (run.Reservation{Scopes: []string{"tenant"}, Key: "alice", Prices: usage.Prices{InputPrice: 10, CachedPrice: new(int64(1)), OutputPrice: 100}}).Renewed(budget.Amount{Turns: 1, Tokens: 1000, TimeMS: 100_000, CostNano: 100_000})
	r := run.New(first, epoch).Run
	var sum usage.Sum
	var spent budget.Amount
	stream := &run.StreamEnd{Outcome: run.OutcomeSucceeded}
	for _, fact := range []run.Fact{
		run.Admitted{Pool: "pool0", Limit: 1},
		run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true},
		run.GenerationEnded{Attempt: 1, Fault: fault.New(fault.PoolUnavailable, "it failed"), Generation: &run.Generation{TokensIn: 50, DecodeMS: 7000}},
		run.GenerationSettled{Attempt: 1},
		run.Due{},
		run.Admitted{Pool: "pool0", Limit: 1},
		run.WorkerContacted{Attempt: 2, WorkerID: "w", Started: true},
		run.GenerationEnded{Attempt: 2, Stream: stream, Generation: &run.Generation{TokensIn: 50, CachedTokens: 40, TokensOut: 3, DecodeMS: 20, Finish: "stop"}},
		run.GenerationEnded{Attempt: 2, Stream: stream, Generation: &run.Generation{TokensIn: 50, CachedTokens: 40, TokensOut: 3, DecodeMS: 20, Finish: "stop"}},
		run.GenerationSettled{Attempt: 2, Final: true},
	} {
		d, err := run.Decide(r, fact, epoch.Add(time.Minute))
		if err != nil {
			t.Fatalf("%T: %v", fact, err)
		}
		r = d.Run
		if d.Ledger == nil {
			continue
		}
		spent = spent.Plus(d.Ledger.Spend)
		if c := d.Ledger.Charge; c != nil {
			sum = sum.Plus(c.Sum)
			if c.Model != "m" || c.Key != "alice" || c.Session != "s" || !c.At.Equal(epoch.Add(time.Minute)) {
				t.Errorf("%T: got the charge %+v", fact, c)
			}
		}
	}
	want := usage.Sum{Tasks: 1, Tokens: usage.Tokens{Input: 50, Cached: 40, Output: 3}, TimeMS: 7020, CostNano: 10*10 + 40*1 + 3*100}
	if sum != want || spent.Turns != want.Tasks || spent.CostNano != want.CostNano || spent.TimeMS != want.TimeMS || r.State != run.Completed {
		t.Errorf("got the usage %+v and %+v spent in %s, want %+v", sum, spent, r.State, want)
	}
}
