package inferences_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestAnswerIsStreamedAndKept(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 2)
	task := h.ask(10, func(in *inferences.NewTask) { in.SessionID = "talk" })
	events := h.read(task, inference.EventID{})
	if got := names(events); strings.Count(got, "t") != 10 || !strings.HasPrefix(got, "stm") && !strings.HasPrefix(got, "st") || !strings.HasSuffix(got, "e") || events[len(events)-1].Name != inference.NameEnd {
		t.Fatalf("got events %q, want started, ten tokens with metrics behind the first one, end", got)
	}
	var text strings.Builder
	for i, at := 0, 0; i < len(events); i++ {
		if token, ok := events[i].Data.(inference.Token); ok {
			if token.I != at {
				t.Errorf("got token %d as number %d", token.I, at)
			}
			text.WriteString(token.T)
			at++
		}
	}
	r := h.ended(task)
	if r.State != run.Completed || r.Generation == nil || r.Generation.TokensOut != 10 || r.Generation.Replica != "r1" || r.Attempt.Number != 1 {
		t.Fatalf("got %s with %+v, want Completed with ten tokens of r1", r.State, r.Generation)
	}
	trace, content, err := h.artifacts.Artifact(t.Context(), client, r.Generation.Trace)
	h.ok(err)
	defer content.Close()
	if want := []string{"sse", "stream", "task:" + task, "session:talk"}; trace.Kind != "trace" || trace.Parent != "" || !slices.Equal(trace.Tags, want) {
		t.Errorf("got %+v, want a trace with the tags %v", trace, want)
	}
	if want := `{"engine":"mock","engine_version":"1","pool_id":"pool0","replica_id":"r1"}`; string(trace.Metadata) != want {
		t.Errorf("got the metadata %s, want %s", trace.Metadata, want)
	}
	kept := make([]byte, 4096)
	n, _ := content.Read(kept)
	if want := `{"transcript":`; !strings.HasPrefix(string(kept[:n]), want) || !strings.Contains(string(kept[:n]), strings.TrimSpace(text.String())) {
		t.Errorf("got trace %s, want the transcript %q", kept[:n], text.String())
	}
	for i := range events {
		if rest := h.read(task, events[i].ID); names(rest) != names(events[i+1:]) {
			t.Errorf("behind %s: got %q, want %q", events[i].ID, names(rest), names(events[i+1:]))
		}
	}
}

func TestCancelIsTheLastEvent(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	h.engines["r1"].FailNext(mockengine.FailStall, 3)
	task, queued := h.ask(10), h.ask(10)
	h.engines["r1"].WaitRunning(1)
	for _, each := range []string{queued, task} {
		_, err := h.tasks.Cancel(t.Context(), client, each, "enough")
		h.ok(err)
		events := h.read(each, inference.EventID{})
		last, ok := events[len(events)-1].Data.(inference.Failure)
		if !ok || last.Code != fault.Cancelled || last.By != "" || strings.Count(names(events), "t") > 3 {
			t.Errorf("got events %q with %+v, want an error with the code CANCELLED at the end", names(events), last)
		}
		if got := names(events); each == queued && got != "e" {
			t.Errorf("got events %q of a task that was cancelled in the queue, want the error alone", got)
		}
		if r := h.ended(each); r.State != run.Cancelled || r.Cancel.Reason != "enough" {
			t.Errorf("got %s, want Cancelled", r.State)
		}
	}
	h.engines["r1"].WaitRunning(0)
	if r := h.ended(h.ask(2)); r.State != run.Completed {
		t.Errorf("got %s after the cancel, want Completed: the slot is free", r.State)
	}
}

func TestFailureBeforeTheFirstTokenIsTriedAgain(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	h.engines["r1"].FailNext(mockengine.FailStart, 0)
	task := h.ask(3)
	events := h.read(task, inference.EventID{})
	if got := strings.ReplaceAll(names(events), "m", ""); got != "sttte" {
		t.Errorf("got events %q, want those of one answer", got)
	}
	if r := h.ended(task); r.State != run.Completed || r.Attempt.Number != 2 {
		t.Errorf("got %s in attempt %d, want Completed in attempt 2", r.State, r.Attempt.Number)
	}
}

func TestBrokenAnswerIsNotContinued(t *testing.T) {
	t.Parallel()
	for _, how := range []mockengine.Failure{mockengine.FailReset, mockengine.FailEarly, mockengine.FailError} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			h := newInferring(t, 1, 1)
			h.engines["r1"].FailNext(how, 2)
			task := h.ask(5)
			events := h.read(task, inference.EventID{})
			last, ok := events[len(events)-1].Data.(inference.Failure)
			if got := strings.ReplaceAll(names(events), "m", ""); got != "stte" || !ok || last.Code != fault.WorkerReset || last.Engine != "mock" || last.TokensOut != 2 {
				t.Errorf("got events %q with %+v, want two tokens and an error WORKER_RESET", got, last)
			}
			if r := h.ended(task); r.State != run.Failed || r.Attempt.Number != 1 || r.Fault.Code != fault.WorkerReset {
				t.Errorf("got %s in attempt %d with %v, want Failed in attempt 1", r.State, r.Attempt.Number, r.Fault)
			}
		})
	}
}

// TestCrashOfTheDispatcher stops the dispatcher while one task has sent tokens, one has not,
// and one is queued.
func TestCrashOfTheDispatcher(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 2)
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	h.engines["r1"].FailNext(mockengine.FailStall, 0)
	begun := h.ask(5)
	h.engines["r1"].WaitRunning(1)
	silent := h.ask(5)
	h.engines["r1"].WaitRunning(2)
	queued := h.ask(5)
	h.seen(begun, inference.NameToken)
	h.restart()
	for _, task := range []string{begun, silent, queued} {
		r, err := h.store.Find(t.Context(), client.Tenant, task)
		h.ok(err)
		h.ok(h.sweeper.Advance(t.Context(), r.Ref()))
	}
	for task, want := range map[string]struct {
		events  string
		state   run.State
		attempt int
	}{
		begun: {"ste", run.Failed, 1}, silent: {"sttttte", run.Completed, 2}, queued: {"sttttte", run.Completed, 1},
	} {
		events := h.read(task, inference.EventID{})
		r := h.ended(task)
		if got := strings.ReplaceAll(names(events), "m", ""); got != want.events || r.State != want.state || r.Attempt.Number != want.attempt {
			t.Errorf("got events %q, %s in attempt %d; want %+v", got, r.State, r.Attempt.Number, want)
		}
	}
}

func TestInvalidTaskIsRefused(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	for _, id := range []string{"old", "small"} {
		_, _, err := h.models.Create(t.Context(), client, id, catalog.Definition{
			Engines: []platform.EngineKind{platform.EngineMock}, ContextTokens: 100, Workloads: []port.Workload{port.WorkloadCompletion},
		}, false)
		h.ok(err)
	}
	_, err := h.models.SetState(t.Context(), client, "old", catalog.Retired, change.Precondition{})
	h.ok(err)
	place := platform.EnginePlace{Kind: platform.EngineMock, Model: "small", Slots: 1, Replicas: make([]platform.EngineReplica, 1)}.WithIDs()
	h.ok(h.store.SavePool(t.Context(), platform.Pool{Tenant: client.Tenant, ID: "pool1", Limit: 1, QueueLimit: 10, Engine: &place}))
	for model, kind := range map[string]platform.EngineKind{"llama": platform.EngineLlamaCpp, "tgi": platform.EngineTGI} {
		of := platform.EnginePlace{Kind: kind, Model: model, Slots: 1, Replicas: []platform.EngineReplica{{URL: "http://127.0.0.1:1"}}}.WithIDs()
		h.ok(h.store.SavePool(t.Context(), platform.Pool{Tenant: client.Tenant, ID: model, Limit: 1, QueueLimit: 10, Engine: &of}))
	}
	for name, row := range map[string]struct {
		change func(*inferences.NewTask)
		code   fault.Code
		field  string
	}{
		"unknown model":  {func(in *inferences.NewTask) { in.Model = "other" }, fault.ModelUnknown, ""},
		"other engine":   {func(in *inferences.NewTask) { in.Engine = "vllm" }, fault.PoolUnavailable, ""},
		"long context":   {func(in *inferences.NewTask) { in.Request.Context = 32769 }, fault.InvalidParams, "ctx"},
		"negative":       {func(in *inferences.NewTask) { in.Request.Context = -1 }, fault.InvalidParams, "ctx"},
		"many tokens":    {func(in *inferences.NewTask) { in.MaxTokens = 50001 }, fault.InvalidParams, "max_tokens"},
		"long prompt":    {func(in *inferences.NewTask) { in.Request.Context, in.Request.Prompt = 4, strings.Repeat("word ", 20) }, fault.InvalidParams, "prompt"},
		"past deadline":  {func(in *inferences.NewTask) { in.Within = -time.Second }, fault.DeadlineUnmet, "deadline_ms"},
		"no prompt":      {func(in *inferences.NewTask) { in.Request.Prompt = "" }, fault.InvalidRequest, "prompt"},
		"embedding":      {func(in *inferences.NewTask) { in.Workload = port.WorkloadEmbedding }, fault.InvalidRequest, "input"},
		"other workload": {func(in *inferences.NewTask) { in.Workload = "x" }, fault.InvalidRequest, "workload"},
		"no model":       {func(in *inferences.NewTask) { in.Model = "" }, fault.InvalidRequest, "model_ref"},
		"unsigned":       {func(in *inferences.NewTask) { in.Strict = true }, fault.UntrustedArtifact, ""},
		"seed":           {func(in *inferences.NewTask) { in.Model, in.Request.Seed = "llama", new(int64(1<<32)) }, fault.InvalidParams, "seed"},
		"random seed":    {func(in *inferences.NewTask) { in.Model, in.Request.Seed = "llama", new(int64(1<<32-1)) }, fault.InvalidParams, "seed"},
		"negative seed":  {func(in *inferences.NewTask) { in.Model, in.Request.Seed = "tgi", new(int64(-1)) }, fault.InvalidParams, "seed"},
		"retired":        {func(in *inferences.NewTask) { in.Model = "old" }, fault.PoolUnavailable, ""},
		"short context":  {func(in *inferences.NewTask) { in.Model, in.Request.Context = "small", 101 }, fault.InvalidParams, "ctx"},
		"other ability": {func(in *inferences.NewTask) {
			in.Model, in.Workload = "small", port.WorkloadRerank
			in.Request = inference.Request{Query: "a", Input: []string{"b"}}
		}, fault.InvalidRequest, "workload"},
		"mocked pool":    {func(in *inferences.NewTask) { in.Model = "pool-unavailable" }, fault.PoolUnavailable, ""},
		"mocked queue":   {func(in *inferences.NewTask) { in.ExpectedTokens = 1_000_000 }, fault.QueueFull, ""},
		"mocked failure": {func(in *inferences.NewTask) { in.Request.Prompt = "cause-internal" }, fault.Internal, ""},
		"no engine":      {func(in *inferences.NewTask) { in.Engine = "x" }, fault.InvalidRequest, "engine"},
		"query":          {func(in *inferences.NewTask) { in.Request.Query = "a" }, fault.InvalidRequest, "query"},
		"long profile":   {func(in *inferences.NewTask) { in.SamplerProfile = strings.Repeat("é", 129) }, fault.InvalidRequest, "sampler_profile_version"},
		"priority":       {func(in *inferences.NewTask) { in.Priority = "x" }, fault.InvalidRequest, "priority"},
	} {
		in := inferences.NewTask{Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "a"}}
		row.change(&in)
		_, err := h.tasks.Create(t.Context(), in)
		if f := fault.Of(err); err == nil || f.Code != row.code || f.Field != row.field {
			t.Errorf("%s: got %v of field %q, want %s of field %q", name, err, f.Field, row.code, row.field)
		}
	}
}

// TestContextBoundsTheAnswer: ctx limits the length of the prompt plus the answer, also of a
// task with max_tokens.
func TestContextBoundsTheAnswer(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 10)
	for name, row := range map[string]struct{ context, asked, want int }{
		"without both":   {0, 0, 32766},
		"tokens alone":   {0, 32768, 32768},
		"context alone":  {10, 0, 8},
		"fewer tokens":   {10, 3, 3},
		"more tokens":    {10, 30, 8},
		"a full context": {2, 5, 1},
	} {
		in := inferences.NewTask{Identity: client, Model: "mock", Workload: port.WorkloadCompletion, MaxTokens: row.asked}
		in.Request = inference.Request{Prompt: "12345678", Context: row.context}
		accepted, err := h.tasks.Create(t.Context(), in)
		h.ok(err)
		if got := accepted.Run.Work.Inference.MaxTokens; got != row.want {
			t.Errorf("%s: got at most %d tokens, want %d", name, got, row.want)
		}
	}
}
