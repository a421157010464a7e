package inferences_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func inSession(id string) func(*inferences.NewTask) {
	return func(in *inferences.NewTask) { in.SessionID = id }
}

// account returns an account of the client's tenant; zero if it does not exist.
func (h *inferring) account(scope string) budget.Account {
	h.Helper()
	a, err := h.store.Account(h.Context(), client.Tenant, scope)
	if !errors.Is(err, port.ErrNotFound) {
		h.ok(err)
	}
	return a
}

func (h *inferring) limit(scope string, l budget.Limit) {
	h.Helper()
	_, err := h.store.PutLimit(h.Context(), client.Tenant, scope, l, h.account(scope).Version, h.clock.Now())
	h.ok(err)
}

// refused creates a task that must be refused.
func (h *inferring) refused(tokens int, change ...func(*inferences.NewTask)) *fault.Fault {
	h.Helper()
	in := inferences.NewTask{
		Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count to ten"}, MaxTokens: tokens,
	}
	for _, c := range change {
		c(&in)
	}
	accepted, err := h.tasks.Create(h.Context(), in)
	if err == nil {
		h.Fatalf("got the task %s, want a refusal", accepted.Run.TaskID)
	}
	return fault.Of(err)
}

// TestLedgerEqualsUsage ends tasks in every way, also by a crash of their dispatcher. At the
// end the accounts have no reservation, and have spent exactly the tokens of the streams.
func TestLedgerEqualsUsage(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 8)
	engine := h.engines["r1"]
	tokens := map[string]int{}
	var tasks []string
	play := func(want, most int, how mockengine.Failure, after int) string {
		t.Helper()
		h.clock.Advance(time.Minute) // a replica that has failed is used again
		if how != "" {
			engine.FailNext(how, after)
		}
		task := h.ask(most, inSession("s"))
		tokens[task] = want
		tasks = append(tasks, task)
		return task
	}
	end := func(task string) { h.read(task, inference.EventID{}); h.ended(task) }
	end(play(7, 7, "", 0))
	end(play(2, 5, mockengine.FailReset, 2))
	end(play(4, 4, mockengine.FailStart, 0)) // retried
	cancelled := play(3, 9, mockengine.FailStall, 3)
	stop := h.passes(5 * time.Millisecond)
	h.seen(cancelled, inference.NameMetrics) // after the batch with the other tokens
	stop()
	engine.WaitRunning(1)
	if held := h.account(budget.SessionScope("s")).Held; held.Turns != 1 || held.Tokens < 9 || held.TimeMS != 300_000 || held.CostNano != 9*2000 {
		t.Errorf("got %+v held while a task runs, want its prompt and 9 tokens", held)
	}
	_, err := h.tasks.Cancel(t.Context(), client, cancelled, "")
	h.ok(err)
	end(cancelled)
	lost := play(1, 6, mockengine.FailStall, 1)
	engine.WaitRunning(1)
	h.seen(lost, inference.NameToken)
	h.restart()
	r, err := h.store.Find(t.Context(), client.Tenant, lost)
	h.ok(err)
	h.ok(h.sweeper.Advance(t.Context(), r.Ref()))
	end(lost)
	want, turns := budget.Amount{}, int64(0)
	for _, task := range tasks {
		r := h.ended(task)
		want = want.Plus(r.Reservation.Used)
		sent := int64(0)
		for _, e := range h.read(task, inference.EventID{}) {
			if e.Name == inference.NameToken {
				sent++
			}
		}
		if used := r.Reservation.Used; !r.Reservation.Held.Zero() || used.Tokens != sent || used.CostNano != 2000*sent || task != cancelled && sent != int64(tokens[task]) {
			t.Errorf("got %+v of a task that ended as %s with %d tokens, want %d", r.Reservation, r.State, sent, tokens[task])
		}
		turns++
	}
	for _, scope := range []string{budget.SessionScope("s"), budget.ProjectScope(client.Workspace), budget.ScopeTenant} {
		if a := h.account(scope); !a.Held.Zero() || a.Spent != want || a.Spent.Turns != turns {
			t.Errorf("got %+v, want nothing held and %+v spent in %d turns", a, want, turns)
		}
	}
}

func TestExhaustedBudgetIsRefused(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	for i, scope := range []string{budget.SessionScope("s"), budget.ProjectScope(client.Workspace), budget.ScopeTenant} {
		h.limit(scope, budget.Limit{Tokens: new(int64(12 + 5*i))}) // the prompt has about 3, and 5*i are spent
		f := h.refused(10, inSession("s"))
		if f.Code != fault.AdmissionReject || f.Retryable {
			t.Errorf("%s: got %+v, want ADMISSION_REJECT without a retry", scope, f)
		}
		task := h.ask(5, inSession("s"))
		h.read(task, inference.EventID{})
		h.ended(task)
		left, err := h.tasks.Remaining(t.Context(), run.Run{Tenant: client.Tenant, Reservation: &run.Reservation{Scopes: []string{scope}}})
		if err != nil || left.Tokens == nil || *left.Tokens != 7 {
			t.Errorf("%s: got %+v (%v) remaining, want 7 tokens", scope, left, err)
		}
		h.limit(scope, budget.Limit{})
	}
	page, _, err := h.store.List(t.Context(), client.Tenant, port.Page{Limit: 100})
	if err != nil || len(page) != 3 {
		t.Errorf("got %d runs (%v), want those that were accepted", len(page), err)
	}
}

func TestSessionIsCreatedAndCloses(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	for range budget.SessionTurns {
		task := h.ask(1, inSession("s"))
		h.read(task, inference.EventID{})
		h.ended(task)
	}
	if f := h.refused(1, inSession("s")); f.Code != fault.SessionClosed {
		t.Errorf("got %v for a ninth turn, want SESSION_CLOSED", f)
	}
	h.ask(1, inSession("t"))
	if a := h.account(budget.SessionScope("t")); !a.ExpiresAt.Equal(h.clock.Now().Add(600 * time.Second)) {
		t.Errorf("got a session that expires at %v, want in 600,000 ms", a.ExpiresAt)
	}
	h.clock.Advance(600 * time.Second)
	if f := h.refused(1, inSession("t")); f.Code != fault.SessionClosed {
		t.Errorf("got %v for an expired session, want SESSION_CLOSED", f)
	}
	if f := h.refused(1, inSession("a/b")); f.Code != fault.InvalidRequest || f.Field != "session_id" {
		t.Errorf("got %v for a malformed session id, want it named", f)
	}
}

// greedy is an engine that exceeds the limit of tokens.
type greedy struct{ port.Engine }

func (g greedy) Generate(ctx context.Context, in port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	in.MaxTokens += 10
	end, err := g.Engine.Generate(ctx, in, each)
	if err != nil {
		return end, fmt.Errorf("cannot generate: %w", err)
	}
	return end, nil
}

func TestGenerationStopsAtItsReservation(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1, func(h *inferring) { h.wrap = func(e port.Engine) port.Engine { return greedy{e} } })
	task := h.ask(4)
	sent := 0
	for _, e := range h.read(task, inference.EventID{}) {
		if e.Name == inference.NameToken {
			sent++
		}
	}
	r := h.ended(task)
	if sent != 4 || r.State != run.Completed || r.Generation.TokensOut != 4 || r.Generation.Finish != string(port.FinishLength) || r.Reservation.Used.Tokens != 4 {
		t.Errorf("got %d tokens, %s with %+v and %+v; want four of each", sent, r.State, r.Generation, r.Reservation)
	}
}

// TestMetricsSayWhatRemains compares the events of a stream with the reservation of its task.
func TestMetricsSayWhatRemains(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	seen := false
	for _, e := range h.read(h.ask(8), inference.EventID{}) {
		m, ok := e.Data.(*inference.Metrics)
		if !ok {
			continue
		}
		seen = true
		if left := m.TokensBudgetRemaining; !m.KVWarmth || left < 0 || left > 7 || m.CostBudgetRemaining != budget.Dollars(2000*left) || m.TimeBudgetRemainingMS != 300_000 {
			t.Errorf("got %+v, want a warm cache and the price of the tokens that remain", m)
		}
	}
	if !seen {
		t.Error("got no event with metrics")
	}
}

// TestFailedResultsAreNoAnswer fails embeddings and rerankings: they use nothing of the budget.
func TestFailedResultsAreNoAnswer(t *testing.T) {
	t.Parallel()
	for workload, request := range map[port.Workload]inference.Request{
		port.WorkloadEmbedding: {Input: []string{"a"}}, port.WorkloadRerank: {Query: "a", Input: []string{"b"}},
	} {
		h := newInferring(t, 1, 1)
		for range 3 {
			h.engines["r1"].FailNext(mockengine.FailStart, 0)
		}
		task := h.ask(0, inSession("s"), func(in *inferences.NewTask) { in.Workload, in.Request = workload, request })
		if r := h.ended(task); r.State != run.Failed || !r.Reservation.Used.Zero() || r.Generation.Finish != "" {
			t.Errorf("%s: got %s with %+v and %+v, want Failed with nothing used", workload, r.State, r.Reservation, r.Generation)
		}
	}
}

// byKey makes the request one of a token with limits.
func byKey(name string, g access.Grant) func(*inferences.NewTask) {
	return func(in *inferences.NewTask) { in.Identity.Key, in.Identity.Grant = name, g }
}

// TestBudgetOfKeyIsRefused spends the budget of a key. The budgets of other keys, and that of the
// next month, are not affected.
func TestBudgetOfKeyIsRefused(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	grant := access.Grant{Budget: &budget.Allowance{CostNano: 10 * 2000, Period: budget.Month}}
	task := h.ask(6, byKey("alice", grant))
	h.read(task, inference.EventID{})
	h.ended(task)
	scope := budget.KeyScope("alice", budget.Month, h.clock.Now())
	if a := h.account(scope); !a.Held.Zero() || a.Spent.CostNano != 6*2000 || a.Spent.Turns != 1 {
		t.Errorf("got %+v, want the cost of 6 tokens", a)
	}
	f := h.refused(5, byKey("alice", grant))
	if f.Code != fault.AdmissionReject || f.Retryable || !strings.Contains(f.Message, scope) {
		t.Errorf("got %+v, want a refusal that names %s", f, scope)
	}
	h.ask(5, byKey("bob", grant))
	h.clock.Advance(32 * 24 * time.Hour)
	h.ask(5, byKey("alice", grant))
}

// TestRateOfKeyIsRefused sends more requests in a minute than the key may.
func TestRateOfKeyIsRefused(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	grant := access.Grant{RequestsPerMinute: 2}
	h.clock.Advance(h.clock.Now().Truncate(time.Minute).Add(61*time.Second + 500*time.Millisecond).Sub(h.clock.Now()))
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	h.ask(3, byKey("bob", grant))
	h.engines["r1"].WaitRunning(1)
	h.ask(1, byKey("alice", grant))
	cancelled := h.ask(1, byKey("alice", grant)) // in the queue
	_, err := h.tasks.Cancel(t.Context(), client, cancelled, "enough")
	h.ok(err)
	if r := h.ended(cancelled); r.State != run.Cancelled { // it gives no request back
		t.Fatalf("got %s, want Cancelled", r.State)
	}
	f := h.refused(1, byKey("alice", grant))
	if f.Code != fault.Throttled || !f.Retryable || !strings.Contains(f.Message, "its 2 requests of this minute; retry in 59 s") {
		t.Errorf("got %+v, want THROTTLED", f)
	}
	short, ok := errors.AsType[*port.NoBudget](f)
	if !ok || short.Wait != 58500*time.Millisecond {
		t.Errorf("got %+v, want a wait of 58.5 s", short)
	}
	h.ask(1, byKey("bob", grant))
	h.clock.Advance(short.Wait)
	h.ask(1, byKey("alice", grant))
}

func TestModelsOfKey(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 8)
	if f := h.refused(1, byKey("alice", access.Grant{Models: []string{"other"}})); f.Code != fault.ModelUnknown {
		t.Errorf("got %+v, want MODEL_UNKNOWN", f)
	}
	h.ask(1, byKey("alice", access.Grant{Models: []string{"other", "mock"}}))
	for want, g := range map[int]access.Grant{0: {Models: []string{"other"}}, 1: {Models: []string{"mock"}}} {
		who := client
		who.Grant = g
		if served, err := h.tasks.Served(t.Context(), who); err != nil || len(served) != want {
			t.Errorf("%v: got %+v, %v, want %d models", g.Models, served, err, want)
		}
	}
}
