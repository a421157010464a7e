package inferences_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// longPrompt does not fit into a record.
var longPrompt = strings.Repeat("word<&> ", inference.RecordSize/8)

func large(in *inferences.NewTask) { in.Request.Prompt = longPrompt }

// withLong makes the context of the engine long enough for large requests.
func withLong(h *inferring) {
	h.engines["r1"] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 2, ContextTokens: 8 << 20})
}

func (h *inferring) objects() int { return h.outputs.Count(port.Accepted) }

// newLarge starts a dispatcher whose engine has reported a long context.
func newLarge(t *testing.T) *inferring {
	t.Helper()
	h := newInferring(t, 1, 2, withLong)
	p, err := h.pools.Pool(t.Context(), client, "pool0")
	h.ok(err)
	h.sweeper.Describe(t.Context(), p.Pool)
	return h
}

// TestLargeRequestIsAnObject has a request beside the record of its task: the engine gets it whole,
// also in a retry of the task, and it is deleted with the record.
func TestLargeRequestIsAnObject(t *testing.T) {
	t.Parallel()
	h := newLarge(t)
	task := h.ask(3, large)
	if got := names(h.read(task, inference.EventID{})); strings.Count(got, "t") != 3 {
		t.Fatalf("got the events %s, want three tokens", got)
	}
	r := h.ended(task)
	input := r.Work.Inference.Input
	if input == nil || len(r.Work.Inference.Request) > 8<<10 || input.Size < int64(len(longPrompt)) || input.Size > int64(len(longPrompt))+100 {
		t.Fatalf("got an object %+v and %d bytes in the record, want the request as an object", input, len(r.Work.Inference.Request))
	}
	if q, err := h.tasks.Request(t.Context(), r); err != nil || q.Prompt != longPrompt {
		t.Errorf("got a prompt of %d bytes (%v), want %d", len(q.Prompt), err, len(longPrompt))
	}
	all := runs.NewRuns(h.requests, h.outputs)
	again, _, err := all.Retry(t.Context(), runs.RetryRequest{Identity: client, TaskID: task})
	h.ok(err)
	_ = h.read(again.TaskID, inference.EventID{})
	if second := h.ended(again.TaskID); second.Generation.TokensIn != r.Generation.TokensIn || second.Work.Inference.Input.Key == input.Key {
		t.Errorf("got %+v for a retry, want a copy of the request", second.Work.Inference.Input)
	}
	if got := h.outputs.Content(port.Accepted, limit.InputKey(r.Tenant, again.TaskID)); !strings.Contains(got, longPrompt) {
		t.Error("the object of the retry has not the prompt")
	}
	h.clock.Advance(49 * time.Hour)
	out := runs.NewOutputRuns(runs.NewOutputs(h.requests.Records, h.outputs))
	h.ok(out.DeleteExpired(t.Context(), r.Ref()))
	if got := h.outputs.Content(port.Accepted, input.Key); got != "" {
		t.Error("the object is left after the record has expired")
	}
}

// TestLargeRequestsInEachCase has a key that is used twice, an answer that is not stored, and a request
// that is too large.
func TestLargeRequestsInEachCase(t *testing.T) {
	t.Parallel()
	h := newLarge(t)
	keyed := func(in *inferences.NewTask) { large(in); in.IdempotencyKey, in.Digest = "k", "d" }
	task := h.ask(2, keyed)
	_ = h.read(task, inference.EventID{})
	h.ended(task)
	before := h.objects()
	if again := h.ask(2, keyed); again != task || h.objects() != before {
		t.Errorf("got the task %s and %d objects, want %s and %d", again, h.objects(), task, before)
	}
	secret := h.ask(2, large, func(in *inferences.NewTask) { in.Unstored = true })
	r := h.ended(secret)
	key := r.Work.Inference.Input.Key
	h.clock.Advance(10 * time.Minute)
	h.ok(h.sweeper.Advance(t.Context(), r.Ref()))
	if r = h.ended(secret); r.Work.Inference.Input != nil || h.outputs.Content(port.Accepted, key) != "" {
		t.Errorf("got %+v, want the request deleted", r.Work.Inference.Input)
	}
	if _, err := h.tasks.Request(t.Context(), r); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want NOT_FOUND", err)
	}
	for name, q := range map[string]inference.Request{
		"prompt": {Prompt: strings.Repeat("x", inference.RequestSize)},
		"tools":  {Messages: []port.Message{{Role: "user", Content: "a"}}, Options: &port.GenerationOptions{Tools: []port.Tool{{Name: "f", Description: longPrompt}}}},
	} {
		_, err := h.tasks.Create(t.Context(), inferences.NewTask{Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: q, MaxTokens: 1})
		if f := fault.Of(err); f == nil || f.Code != fault.InvalidParams || f.Field != name || !strings.Contains(f.Message, "want at most") {
			t.Errorf("got %v, want INVALID_PARAMS of %s with the limit", err, name)
		}
	}
}

// TestRequestWithoutARecordIsSwept stops a process between the object and the record of a task.
func TestRequestWithoutARecordIsSwept(t *testing.T) {
	t.Parallel()
	h := newLarge(t)
	task := h.ask(2, large)
	_ = h.read(task, inference.EventID{})
	h.ended(task)
	const lost = "inf_01K9LOSTLOSTLOSTLOSTLOSTLO"
	input, err := h.prompts.Save(t.Context(), client.Tenant, lost, []byte(`{}`))
	h.ok(err)
	sweep := h.sweepTickets
	if n := sweep(); n != 0 || h.outputs.Content(port.Accepted, input.Key) == "" {
		t.Errorf("got %d resources swept before their time, want none", n)
	}
	h.clock.Advance(inference.TicketTime + time.Second)
	if n := sweep(); n != 2 || h.outputs.Content(port.Accepted, input.Key) != "" {
		t.Errorf("got %d tickets, want 2, and the object without a record deleted", n)
	}
	r, err := h.store.Load(t.Context(), run.Ref{Tenant: client.Tenant, ID: task})
	h.ok(err)
	if q, err := h.tasks.Request(t.Context(), r); err != nil || q.Prompt != longPrompt {
		t.Errorf("got %v, want the request of the task", err)
	}
	if n := sweep(); n != 0 {
		t.Errorf("got %d resources in a second sweep, want none", n)
	}
}

// sweepTickets collects the tickets that are due, and returns their number.
func (h *inferring) sweepTickets() (found int) {
	h.Helper()
	due := h.prompts.Beside(h.artifacts)
	for after := ""; ; {
		refs, next, err := due.Expired(h.Context(), after, 10)
		h.ok(err)
		for _, ref := range refs {
			h.ok(due.Collect(h.Context(), ref.Tenant, ref.ID))
		}
		if found, after = found+len(refs), next; next == "" {
			return found
		}
	}
}

// TestRetriedRequestHasATicket retries a task with a large request. The first retry stops between the
// object and its record: a sweep deletes the object. That of the second one stays.
func TestRetriedRequestHasATicket(t *testing.T) {
	t.Parallel()
	unsure := false
	h := newInferring(t, 1, 2, withLong, func(h *inferring) {
		h.outputs = fake.NewOutputs(h.clock, func(c fake.Call) fake.Fate {
			if unsure && c.Method == "Put" { //nolint:usestdlibvars // a method of the port
				return fake.Unsure
			}
			return fake.Applied
		})
	})
	p, err := h.pools.Pool(t.Context(), client, "pool0")
	h.ok(err)
	h.sweeper.Describe(t.Context(), p.Pool)
	task := h.ask(2, large)
	_ = h.read(task, inference.EventID{})
	h.ended(task)
	before := h.objects()
	all := runs.NewRuns(h.requests, h.outputs)
	unsure = true
	if _, _, err := all.Retry(t.Context(), runs.RetryRequest{Identity: client, TaskID: task}); err == nil || h.objects() != before+1 {
		t.Fatalf("got %v and %d objects, want an error and an object without a record beside %d", err, h.objects(), before)
	}
	unsure = false
	again, _, err := all.Retry(t.Context(), runs.RetryRequest{Identity: client, TaskID: task})
	h.ok(err)
	_ = h.read(again.TaskID, inference.EventID{})
	h.ended(again.TaskID)
	with := h.objects()
	h.clock.Advance(inference.TicketTime + time.Second)
	if n := h.sweepTickets(); n != 3 || h.objects() != with-1 {
		t.Errorf("got %d tickets and %d objects, want 3, and %d", n, h.objects(), with-1)
	}
	if q, err := h.tasks.Request(t.Context(), again); err != nil || q.Prompt != longPrompt {
		t.Errorf("got %v, want the request of the retry", err)
	}
}
