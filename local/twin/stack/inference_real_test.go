//go:build engines

package stack_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/local/proof/engines/tinymodel"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// realEngine is a kind of inference server for a test.
type realEngine struct {
	kind platform.EngineKind
	// launch starts a server that ends with the test, or returns one that several tests share.
	launch func(t *testing.T, o servers.Options) *servers.Server
}

// eachEngine runs a test with each real inference server that starts fast. TestRealVLLM runs
// the tests with vLLM.
func eachEngine(t *testing.T, test func(t *testing.T, e realEngine)) {
	t.Helper()
	for _, kind := range []platform.EngineKind{platform.EngineLlamaCpp, platform.EngineTriton} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			installed := install(t, kind)
			test(t, realEngine{kind, func(t *testing.T, o servers.Options) *servers.Server {
				t.Helper()
				return launch(t, installed, o)
			}})
		})
	}
}

func install(t *testing.T, kind platform.EngineKind) *servers.Engine {
	t.Helper()
	installed, err := servers.Install(t.Context(), kind, os.Environ(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	return installed
}

// launch starts an inference server.
func launch(t *testing.T, installed *servers.Engine, o servers.Options) *servers.Server {
	t.Helper()
	o.Folder = t.TempDir()
	server, err := installed.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Kill()
		if t.Failed() {
			t.Logf("the inference server's output:\n%s", server.Log())
		}
	})
	return server
}

// addressed returns the engines of a stack.
func addressed(kind platform.EngineKind, servers ...*servers.Server) (list []stack.EngineAddress) {
	for _, s := range servers {
		list = append(list, stack.EngineAddress{Kind: kind, URL: s.URL})
	}
	return list
}

// completed waits until the task is completed and returns its details.
func (g *target) completed(task string) contract.InferenceDetails {
	g.T.Helper()
	if state := lastState(g, task); state != string(run.Completed) {
		g.T.Fatalf("got %s of %s, want Completed", state, task)
	}
	return *outside.Get[contract.Task](g.Client, "/v1/tasks/"+task).Inference
}

// TestRealAnswer reads the stream of an answer, its transcript and its usage.
func TestRealAnswer(t *testing.T) {
	t.Parallel()
	eachEngine(t, realAnswer)
}

func realAnswer(t *testing.T, e realEngine) {
	t.Helper()
	g := start(t, served{Engines: addressed(e.kind, e.launch(t, servers.Options{}))})
	task := g.ask(12)
	var whole tokens
	whole.read(t.Context(), g.Client, task, 100)
	if whole.failed != nil || !pieces(e.kind, whole.count, 12) || !strings.HasPrefix(strings.Join(whole.names, " "), "started token ") || !slices.Contains(whole.names, "metrics") || whole.end.Event != "end" {
		t.Fatalf("got %v with %d tokens (%v), want started, twelve tokens, metrics among them, end", whole.names, whole.count, whole.failed)
	}
	d := g.completed(task)
	if d.TokensOut == nil || *d.TokensOut != 12 || d.TokensIn == nil || *d.TokensIn == 0 || d.EngineVersion == "" || d.FinishReason != "length" {
		t.Errorf("got %+v, want twelve tokens for a prompt, a version, and the reason length", d)
	}
}

// TestRealCancel cancels a long answer at its first token. The engine then stops generating,
// and the slot is free for another task.
func TestRealCancel(t *testing.T) {
	t.Parallel()
	eachEngine(t, realCancel)
}

func realCancel(t *testing.T, e realEngine) {
	t.Helper()
	server := e.launch(t, servers.Options{Shape: tinymodel.Slow, Slots: 1})
	g := start(t, served{Engines: addressed(e.kind, server)})
	task := g.ask(1500)
	r := tokens{at: func(events int) {
		if events == 2 {
			g.Call(http.MethodPost, "/v1/tasks/"+task+"/cancel", "")
		}
	}}
	r.read(t.Context(), g.Client, task, 1501)
	if r.end.Event != "error" || !strings.Contains(r.end.Data, `"CANCELLED"`) || r.count > 1000 {
		t.Fatalf("got %+v after %d tokens, want the error CANCELLED", r.end, r.count)
	}
	if state := lastState(g, task); state != string(run.Cancelled) {
		t.Errorf("got %s, want Cancelled", state)
	}
	adapter, err := engine.New(engine.Config{Kind: e.kind, URL: server.URL, MetricsURL: server.MetricsURL, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	if load, err := adapter.Load(t.Context()); err != nil || load.Running != nil && *load.Running != 0 || load.Waiting != nil && *load.Waiting != 0 {
		t.Errorf("got the load %+v, %v, want none", load, err)
	}
	g.completed(g.ask(3))
	// The model has one slot, so it writes its log before the next request begins.
	if log := server.Log(); e.kind == platform.EngineTriton && !strings.Contains(log, "request ends: cancelled") {
		t.Error("the model was not cancelled")
	}
	if held := outside.Get[contract.PoolHealth](g.Client, "/v1/pools/pool0/health").Held; held != 0 {
		t.Errorf("got %d held slots, want none", held)
	}
}

// define changes the pool's engine.
func define(g *target, e realEngine, server *servers.Server, is contract.PoolEngine) {
	g.T.Helper()
	is.Kind, is.Model, is.Replicas = string(e.kind), g.Models[0], []contract.PoolReplica{{URL: server.URL, MetricsURL: server.MetricsURL}}
	if answer := g.Call(http.MethodPut, "/v1/pools/pool0", string(outside.Encode(g.T, contract.PoolDefinition{Engine: &is}))); answer.Status != http.StatusOK {
		g.T.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
	}
}

// TestRealSameSeed runs a prompt twice in a deterministic pool, with a seed and without one.
// The transcripts are the same artifact. Another seed gives another transcript.
func TestRealSameSeed(t *testing.T) {
	t.Parallel()
	eachEngine(t, realSameSeed)
}

func realSameSeed(t *testing.T, e realEngine) {
	t.Helper()
	server := e.launch(t, servers.Options{})
	g := start(t, served{Engines: addressed(e.kind, server)})
	define(g, e, server, contract.PoolEngine{Slots: new(1), Deterministic: true})
	traces := map[string]string{}
	length := 40
	for _, seed := range []contract.Seed{-1, 7, 7, -1, 8} {
		request := contract.TaskRequest{Prompt: "tell a story", MaxTokens: &length}
		name := "none"
		if seed >= 0 {
			request.Seed, name = &seed, fmt.Sprint(seed)
		}
		trace := g.completed(g.create(request)).TraceID
		if known := traces[name]; known != "" && known != trace {
			t.Errorf("seed %s: got the transcripts %s and %s, want the same", name, known, trace)
		}
		traces[name] = trace
	}
	if traces["7"] == traces["8"] {
		t.Error("got the same transcript for two seeds")
	}
}

// TestRealStreamsAreResumedAfterAKill kills Sortie during 50 streams.
func TestRealStreamsAreResumedAfterAKill(t *testing.T) {
	t.Parallel()
	eachEngine(t, realStreamsAreResumed)
}

func realStreamsAreResumed(t *testing.T, e realEngine) {
	t.Helper()
	server := e.launch(t, servers.Options{Shape: tinymodel.Slow})
	resumesAfterAKill(t, served{Data: t.TempDir(), Engines: addressed(e.kind, server)}, 8)
}

// TestRealEngineIsKilled kills the inference server during 50 streams and restarts it. The
// answers that had begun end with an error; the others are complete.
func TestRealEngineIsKilled(t *testing.T) {
	t.Parallel()
	eachEngine(t, realEngineIsKilled)
}

func realEngineIsKilled(t *testing.T, e realEngine) {
	t.Helper()
	first := e.launch(t, servers.Options{Shape: tinymodel.Slow})
	g := start(t, served{Engines: addressed(e.kind, first)})
	define(g, e, first, contract.PoolEngine{Slots: new(2)}) // vLLM does not report its slots
	const streams, length = 50, 40                          // long, so that the kill finds an answer in progress
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	var reading sync.WaitGroup
	begun := make(chan struct{}, streams)
	readers, tasks := make([]tokens, streams), make([]string, streams)
	for i := range tasks {
		tasks[i] = g.ask(length)
		readers[i].at = func(events int) {
			if events == 3 {
				begun <- struct{}{}
			}
		}
		reading.Go(func() { readers[i].read(ctx, g.Client, tasks[i], length+1) })
	}
	for range streams / 2 {
		<-begun
	}
	first.Kill()
	e.launch(t, servers.Options{Shape: tinymodel.Slow, Port: first.Port})
	reading.Wait()
	broken := 0
	for i, r := range readers {
		state := lastState(g, tasks[i])
		switch {
		case r.failed != nil:
			t.Errorf("task %d: %v", i, r.failed)
		case r.end.Event == "error":
			broken++
			if state != string(run.Failed) || r.count == 0 || !strings.Contains(r.end.Data, `"WORKER_RESET"`) {
				t.Errorf("task %d: got %s %+v after %d tokens, want Failed and WORKER_RESET after some", i, state, r.end, r.count)
			}
		case r.end.Event != "end" || state != string(run.Completed) || !pieces(e.kind, r.count, length):
			t.Errorf("task %d: got %s %+v after %d pieces, want Completed and %d", i, state, r.end, r.count, length)
		}
	}
	if broken < 1 || broken > 2 {
		t.Errorf("got %d broken answers, want one or two: the engine has two slots", broken)
	}
	t.Logf("%d of %d answers were broken", broken, streams)
	if held := outside.Get[contract.PoolHealth](g.Client, "/v1/pools/pool0/health").Held; held != 0 {
		t.Errorf("got %d held slots at the end, want none", held)
	}
}

// TestRealOpenAIClient runs the official Go client with engines that accept conversations.
func TestRealOpenAIClient(t *testing.T) {
	t.Parallel()
	eachEngine(t, realOpenAIClient)
}

func realOpenAIClient(t *testing.T, e realEngine) {
	t.Helper()
	if e.kind == platform.EngineTriton {
		return // this engine only continues prompts
	}
	answersOpenAI(t, start(t, served{Engines: addressed(e.kind, e.launch(t, servers.Options{Shape: tinymodel.Slow}))}))
}

// TestRealClientsLeave runs clientsLeave with engines that accept conversations.
func TestRealClientsLeave(t *testing.T) {
	t.Parallel()
	eachEngine(t, realClientsLeave)
}

func realClientsLeave(t *testing.T, e realEngine) {
	t.Helper()
	if e.kind == platform.EngineTriton {
		return
	}
	server := e.launch(t, servers.Options{Shape: tinymodel.Slow})
	clientsLeave(t, start(t, served{Engines: addressed(e.kind, server)}))
	adapter, err := engine.New(engine.Config{Kind: e.kind, URL: server.URL, MetricsURL: server.MetricsURL, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	if load, err := adapter.Load(t.Context()); err != nil || load.Running != nil && *load.Running != 0 || load.Waiting != nil && *load.Waiting != 0 {
		t.Errorf("got the load %+v, %v, want none", load, err)
	}
}
