package orchestrator_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/catalog"
	systemclock "github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest/fake"
	"github.com/sortie-dev/sortie/shared/run"
)

// inferring runs inference tasks on SQLite with mock engines. Its clock moves only when a
// test moves it; a batch of tokens is appended at the latest when the answer ends.
type inferring struct {
	*testing.T
	clock     *systemclock.Virtual
	store     port.Store
	feed      port.Feed
	outputs   *fake.Outputs
	engines   map[string]*mockengine.Engine
	wrap      func(port.Engine) port.Engine // nil for the mocks as they are
	tasks     *orchestrator.Inference
	artifacts *orchestrator.Artifacts
	models    *orchestrator.Models
	pools     *orchestrator.Pools
	sweeper   *orchestrator.Dispatcher
	explains  *orchestrator.Explanations
	log       slog.Handler
	path      string // of the database
	close     func() error
	stop      func()
}

// newInferring starts a dispatcher and creates the pool "pool0" of mock engines with the
// replicas r1, r2 and so on.
func newInferring(t *testing.T, replicas, slots int, change ...func(*inferring)) *inferring {
	t.Helper()
	h := &inferring{T: t, clock: systemclock.NewVirtual(epoch), engines: map[string]*mockengine.Engine{}, log: slog.DiscardHandler}
	h.path = filepath.Join(t.TempDir(), "sortie.db")
	h.open()
	t.Cleanup(func() { _ = h.close() })
	h.outputs = fake.NewOutputs(h.clock, nil)
	place := run.EnginePlace{Kind: run.EngineMock, Model: "mock", Slots: slots, Replicas: make([]run.EngineReplica, replicas)}.WithIDs()
	for _, r := range place.Replicas {
		h.engines[r.ID] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: slots})
	}
	_, err := h.store.LoadPool(t.Context(), run.PoolRef{Tenant: client.Tenant, ID: "pool0"})
	if errors.Is(err, port.ErrNotFound) {
		err = h.store.SavePool(t.Context(), run.Pool{Tenant: client.Tenant, ID: "pool0", Limit: place.Limit(), QueueLimit: 1000, Engine: &place})
	}
	h.ok(err)
	for _, c := range change {
		c(h)
	}
	h.restart()
	t.Cleanup(func() { h.stop() })
	return h
}

// open opens the database.
func (h *inferring) open() {
	h.Helper()
	db, err := sqlite.Open(h.Context(), h.path)
	h.ok(err)
	h.close = db.Close
	h.store, err = sqlite.NewStore(h.Context(), db, h.clock)
	h.ok(err)
	h.feed, err = sqlite.NewFeed(h.Context(), db, sqlite.FeedConfig{Clock: h.clock, Retention: 24 * time.Hour})
	h.ok(err)
}

// restart stops the dispatcher as a crash does, and starts another one.
func (h *inferring) restart() {
	h.Helper()
	if h.stop != nil {
		h.stop()
	}
	config := orchestrator.Config{
		Policy: run.Policy{RecordRetention: 48 * time.Hour, OutputRetention: 24 * time.Hour, Retry: run.Retry{InitialDelay: time.Second, Multiplier: 2, MaxDelay: time.Minute}},
		Pool:   "default", MockEngine: true,
	}
	random := func(n int) string {
		b := make([]byte, n)
		_, _ = rand.Read(b)
		return hex.EncodeToString(b)
	}
	records := orchestrator.NewRecords(h.store, h.clock, slog.New(h.log))
	h.models = orchestrator.NewModels(records, api.ModelDocument, config)
	life := orchestrator.NewLifecycle(records, nil, config)
	h.pools = orchestrator.NewPools(life, api.PoolDocument, config)
	requests := orchestrator.NewRequests(life, random, config)
	h.tasks = orchestrator.NewInference(requests, h.models, h.feed)
	h.explains = orchestrator.NewExplanations(orchestrator.NewDefinitions(orchestrator.NewRuns(requests, h.outputs), config))
	h.artifacts = orchestrator.NewArtifacts(records, h.outputs, random, config)
	h.sweeper = orchestrator.NewDispatcher(h.tasks, h.artifacts, func(_ run.EnginePlace, r run.EngineReplica) (port.Engine, error) {
		if h.wrap != nil {
			return h.wrap(h.engines[r.ID]), nil
		}
		return h.engines[r.ID], nil
	}, orchestrator.DispatcherConfig{ID: "dispatcher-" + random(4), Alone: true, Batch: 5 * time.Millisecond})
	ctx, cancel := context.WithCancel(h.Context())
	var running sync.WaitGroup
	ready := h.sweeper.Ready()
	running.Go(func() { h.sweeper.Run(ctx) })
	<-ready
	h.stop = func() { cancel(); running.Wait() }
}

func (h *inferring) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// ask creates a task of a number of tokens.
func (h *inferring) ask(tokens int, change ...func(*orchestrator.NewTask)) string {
	h.Helper()
	in := orchestrator.NewTask{
		Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count to ten"}, MaxTokens: tokens,
	}
	for _, c := range change {
		c(&in)
	}
	accepted, err := h.tasks.Create(h.Context(), in)
	h.ok(err)
	return accepted.Run.TaskID
}

// read returns the events of a stream behind an id until its end.
func (h *inferring) read(task string, after inference.EventID) (events []inference.Event) {
	h.Helper()
	err := h.tasks.Follow(h.Context(), client, task, after, func(run.Run) error { return nil }, func(found []inference.Event) error {
		events = append(events, found...)
		return nil
	})
	if !errors.Is(err, orchestrator.ErrAllRead) {
		h.ok(err)
	}
	return events
}

func names(events []inference.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Name[:1])
	}
	return b.String()
}

// ended returns a run that has ended; the dispatcher commits that after the stream's end.
func (h *inferring) ended(task string) run.Run {
	h.Helper()
	for {
		r, err := h.store.Find(h.Context(), client.Tenant, task)
		h.ok(err)
		if r.State.Terminal() {
			return r
		}
		h.ok(h.sweeper.Await(h.Context(), r))
	}
}

func TestAnswerIsStreamedAndKept(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 2)
	task := h.ask(10, func(in *orchestrator.NewTask) { in.SessionID = "talk" })
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
	for how, attempts := range map[mockengine.Failure]int{mockengine.FailStart: 2, mockengine.FailBusy: 2} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			h := newInferring(t, 1, 1)
			h.engines["r1"].FailNext(how, 0)
			task := h.ask(3)
			events := h.read(task, inference.EventID{})
			if got := strings.ReplaceAll(names(events), "m", ""); got != "sttte" {
				t.Errorf("got events %q, want those of one answer", got)
			}
			if r := h.ended(task); r.State != run.Completed || r.Attempt.Number != attempts {
				t.Errorf("got %s in attempt %d, want Completed in attempt %d", r.State, r.Attempt.Number, attempts)
			}
		})
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

// TestCrashOfTheDispatcher stops it while one task has sent tokens, one has not, and one is
// queued.
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
		h.ok(h.sweeper.Conduct(t.Context(), r.Ref()))
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

// seen waits for an event of a task.
func (h *inferring) seen(task, name string) {
	h.Helper()
	found := errors.New("found")
	err := h.tasks.Follow(h.Context(), client, task, inference.EventID{}, func(run.Run) error { return nil }, func(events []inference.Event) error {
		for _, e := range events {
			if e.Name == name {
				return found
			}
		}
		return nil
	})
	if !errors.Is(err, found) {
		h.Fatalf("the stream ended (%v) without an event %s", err, name)
	}
}

// passes lets time pass, five times as fast as that of the host, until stop is called.
func (h *inferring) passes() (stop func()) {
	over := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				h.clock.Advance(5 * time.Millisecond)
			}
		}
	})
	return func() { close(over); passing.Wait() }
}

func TestInvalidTaskIsRefused(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	for _, id := range []string{"old", "small"} {
		_, _, err := h.models.Create(t.Context(), client, id, catalog.Definition{
			Engines: []port.EngineKind{port.EngineMock}, ContextTokens: 100, Workloads: []port.Workload{port.WorkloadCompletion},
		}, false)
		h.ok(err)
	}
	_, err := h.models.SetState(t.Context(), client, "old", catalog.Retired, orchestrator.Precondition{})
	h.ok(err)
	place := run.EnginePlace{Kind: run.EngineMock, Model: "small", Slots: 1, Replicas: make([]run.EngineReplica, 1)}.WithIDs()
	h.ok(h.store.SavePool(t.Context(), run.Pool{Tenant: client.Tenant, ID: "pool1", Limit: 1, QueueLimit: 10, Engine: &place}))
	for name, row := range map[string]struct {
		change func(*orchestrator.NewTask)
		code   fault.Code
		field  string
	}{
		"unknown model":  {func(in *orchestrator.NewTask) { in.Model = "other" }, fault.ModelUnknown, ""},
		"other engine":   {func(in *orchestrator.NewTask) { in.Engine = "vllm" }, fault.PoolUnavailable, ""},
		"long context":   {func(in *orchestrator.NewTask) { in.Request.Context = 32769 }, fault.InvalidParams, "ctx"},
		"negative":       {func(in *orchestrator.NewTask) { in.Request.Context = -1 }, fault.InvalidParams, "ctx"},
		"many tokens":    {func(in *orchestrator.NewTask) { in.MaxTokens = 50001 }, fault.InvalidParams, "max_tokens"},
		"long prompt":    {func(in *orchestrator.NewTask) { in.Request.Context, in.Request.Prompt = 4, strings.Repeat("word ", 20) }, fault.InvalidParams, "prompt"},
		"past deadline":  {func(in *orchestrator.NewTask) { in.Within = -time.Second }, fault.DeadlineUnmet, "deadline_ms"},
		"no prompt":      {func(in *orchestrator.NewTask) { in.Request.Prompt = "" }, fault.InvalidRequest, "prompt"},
		"embedding":      {func(in *orchestrator.NewTask) { in.Workload = port.WorkloadEmbedding }, fault.InvalidRequest, "input"},
		"other workload": {func(in *orchestrator.NewTask) { in.Workload = "x" }, fault.InvalidRequest, "workload"},
		"no model":       {func(in *orchestrator.NewTask) { in.Model = "" }, fault.InvalidRequest, "model_ref"},
		"unsigned":       {func(in *orchestrator.NewTask) { in.Strict = true }, fault.UntrustedArtifact, ""},
		"retired":        {func(in *orchestrator.NewTask) { in.Model = "old" }, fault.PoolUnavailable, ""},
		"short context":  {func(in *orchestrator.NewTask) { in.Model, in.Request.Context = "small", 101 }, fault.InvalidParams, "ctx"},
		"other ability": {func(in *orchestrator.NewTask) {
			in.Model, in.Workload = "small", port.WorkloadRerank
			in.Request = inference.Request{Query: "a", Input: []string{"b"}}
		}, fault.InvalidRequest, "workload"},
		"mocked pool":    {func(in *orchestrator.NewTask) { in.Model = "pool-unavailable" }, fault.PoolUnavailable, ""},
		"mocked queue":   {func(in *orchestrator.NewTask) { in.ExpectedTokens = 1_000_000 }, fault.QueueFull, ""},
		"mocked failure": {func(in *orchestrator.NewTask) { in.Request.Prompt = "cause-internal" }, fault.Internal, ""},
		"priority":       {func(in *orchestrator.NewTask) { in.Priority = "x" }, fault.InvalidRequest, "priority"},
	} {
		in := orchestrator.NewTask{Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "a"}}
		row.change(&in)
		_, err := h.tasks.Create(t.Context(), in)
		if f := fault.Of(err); err == nil || f.Code != row.code || f.Field != row.field {
			t.Errorf("%s: got %v of field %q, want %s of field %q", name, err, f.Field, row.code, row.field)
		}
	}
}

// TestRepeatedTaskIsTheSame: a key gives the task of its first use, also when its model has
// been retired since.
