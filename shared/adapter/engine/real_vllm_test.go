//go:build engines

package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestRealVLLM runs the suite on a vLLM, and makes it fail within an answer. Its tests share
// one server sequentially, because it takes up to a minute to start.
//
//nolint:paralleltest // its parts use one server
func TestRealVLLM(t *testing.T) {
	t.Parallel()
	t.Run(string(platform.EngineVLLM), func(t *testing.T) {
		t.Parallel()
		server := startServer(t, install(t, platform.EngineVLLM), servers.Options{})
		t.Run("suite", func(t *testing.T) { suiteOnVLLM(t, server) })
		t.Run("more requests than slots", func(t *testing.T) { queueOfVLLM(t, server) })
		t.Run("refused parameters", func(t *testing.T) { refusedByVLLM(t, server) })
		t.Run("same text as llama-server", func(t *testing.T) { sameGreedyText(t, server) })
		t.Run("asked to end within an answer", func(t *testing.T) { vllmIsAskedToEnd(t, server) })
		t.Run("stopped within an answer", func(t *testing.T) {
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			e, now := adapt(t, platform.EngineVLLM, server)
			failWithin(t, e, server, func() { server.Signal(syscall.SIGSTOP) }, now, fault.DecodeTimeout)
			server.Signal(syscall.SIGCONT)
			waitIdle(t, e)
		})
		t.Run("killed within an answer", func(t *testing.T) {
			e, now := adapt(t, platform.EngineVLLM, server)
			failWithin(t, e, server, func() { server.Signal(syscall.SIGKILL) }, nil, fault.WorkerReset)
			server.Kill()
			porttest.EngineIsUnreachable(t, porttest.EngineHarness{Engine: e, Clock: now, Model: server.Model})
		})
	})
}

// suiteOnVLLM runs the suite. One test at a time uses the server.
func suiteOnVLLM(t *testing.T, server *servers.Server) {
	t.Helper()
	var one sync.Mutex
	porttest.Engine(t, func(t *testing.T) porttest.EngineHarness {
		one.Lock()
		t.Cleanup(one.Unlock)
		e, now := adapt(t, platform.EngineVLLM, server)
		waitIdle(t, e)
		return porttest.EngineHarness{
			Engine: e, Clock: now, Model: server.Model, Messages: true, Stops: true, Names: true,
			Idle: func(t *testing.T) { waitIdle(t, e) },
		}
	})
}

// queueOfVLLM sends more requests than the server has slots. The others wait. A request beyond
// the server's limit is refused. Cancelled requests free their slots for waiting ones.
func queueOfVLLM(t *testing.T, server *servers.Server) {
	t.Helper()
	e, _ := adapt(t, platform.EngineVLLM, server)
	waitIdle(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan struct{}, 2)
	var requests sync.WaitGroup
	for range 2 {
		requests.Go(func() {
			pieces := 0
			_, err := e.Generate(ctx, port.Generation{Model: server.Model, Prompt: "the archive", MaxTokens: 2000}, func(port.Piece) error {
				if pieces++; pieces == 1 {
					begun <- struct{}{}
				}
				return nil
			})
			if ctx.Err() == nil {
				t.Errorf("got an end (%v) after %d pieces, want an answer that is cancelled", err, pieces)
			}
		})
	}
	<-begun
	<-begun
	short := port.Generation{Model: server.Model, Prompt: "the archive", MaxTokens: 12}
	for range 2 {
		requests.Go(func() {
			pieces := 0
			end, err := e.Generate(t.Context(), short, func(port.Piece) error {
				if pieces++; pieces == 1 && ctx.Err() == nil {
					t.Error("got a piece of a request for which there is no slot")
				}
				return nil
			})
			if err != nil || end.TokensOut != 12 {
				t.Errorf("got %+v, %v from a request that waited, want an answer of 12 tokens", end, err)
			}
		})
	}
	for ctx.Err() == nil {
		load, err := e.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if load.Running == nil || load.Waiting == nil {
			t.Fatalf("got the load %+v, want running and waiting requests", load)
		}
		if *load.Running == 2 && *load.Waiting == 2 {
			if _, err := e.Generate(t.Context(), short, func(port.Piece) error { return nil }); !fault.Is(err, fault.ReplicaExhausted) {
				t.Errorf("got %v from a request beyond the limit of the queue, want ReplicaExhausted", err)
			}
			cancel()
		}
	}
	requests.Wait()
	waitIdle(t, e)
}

// vllmIsAskedToEnd terminates the server within an answer. It ends the answer at once, with an
// error event and a regular end. If it has closed its engine before it has read that the engine
// is dead, it keeps the answer open forever. Then the limit between two pieces ends it.
func vllmIsAskedToEnd(t *testing.T, server *servers.Server) {
	t.Helper()
	e, now := adapt(t, platform.EngineVLLM, server)
	done := generateUntil(t, e, server, server.Terminate)
	want := fault.WorkerReset
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	for len(done) == 0 && ctx.Err() == nil {
		_ = clock.Sleep(ctx, clock.System{}, 10*time.Millisecond) // returns an error at the deadline
	}
	if len(done) == 0 {
		want = fault.DecodeTimeout
		pass(now, done)
	}
	if err := <-done; !fault.Is(err, want) {
		t.Errorf("got %v, want %s", err, want)
	}
	t.Logf("the answer ended with %s", want)
}

// refusedByVLLM sends parameters that the server refuses and the adapter does not.
func refusedByVLLM(t *testing.T, server *servers.Server) {
	t.Helper()
	e, _ := adapt(t, platform.EngineVLLM, server)
	below, above := -1.0, 2.0
	for name, g := range map[string]port.Generation{
		"max tokens above the context":  {Prompt: "x", MaxTokens: 2049},
		"prompt as long as the context": {Prompt: strings.Repeat("x", 2047), MaxTokens: 1},
		"temperature below its range":   {Prompt: "x", MaxTokens: 1, Temperature: &below},
		"top_p above its range":         {Prompt: "x", MaxTokens: 1, TopP: &above},
		"empty stop text":               {Prompt: "x", MaxTokens: 1, Stop: []string{""}},
	} {
		g.Model = server.Model
		if end, err := e.Generate(t.Context(), g, func(port.Piece) error { return nil }); !fault.Is(err, fault.InvalidParams) {
			t.Errorf("%s: got %+v, %v, want InvalidParams", name, end, err)
		}
	}
}

// sameGreedyText requests the most probable text behind random prompts from a vLLM and a
// llama-server with the same weights. The texts, the numbers of tokens and the finish reasons
// are equal. Both servers compute with 32 bits. Their logarithms of probabilities differ by
// less than 0.00003. Those of the two best tokens are rarely that close.
func sameGreedyText(t *testing.T, server *servers.Server) {
	t.Helper()
	of := func(kind platform.EngineKind, server *servers.Server) *engine.Engine {
		e, _ := adapt(t, kind, server)
		return e
	}
	llama := startServer(t, install(t, platform.EngineLlamaCpp), servers.Options{Exact: true})
	pair := []*engine.Engine{of(platform.EngineVLLM, server), of(platform.EngineLlamaCpp, llama)}
	const prompts, length = 48, 40
	random := rand.New(rand.NewPCG(1, 2))
	for i := range prompts {
		g, zero := port.Generation{Model: server.Model, MaxTokens: length}, 0.0
		g.Temperature = &zero
		if g.Prompt = randomText(random, 1+random.IntN(200)); i%4 == 0 {
			g.Messages = []port.Message{{Role: "system", Content: randomText(random, 20)}, {Role: "user", Content: g.Prompt}}
			g.Prompt = ""
		}
		var answers [2]string
		for j, e := range pair {
			text := ""
			end, err := e.Generate(t.Context(), g, func(p port.Piece) error {
				text += p.Text
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			answers[j] = fmt.Sprintf("%d tokens, then %d until %s: %s", end.TokensIn, end.TokensOut, end.Finish, text)
		}
		if answers[0] != answers[1] {
			t.Errorf("prompt %d, %q %v: got\n%s\nfrom vLLM, want what llama-server answers:\n%s", i, g.Prompt, g.Messages, answers[0], answers[1])
		}
	}
}

// randomText returns letters, digits, spaces, signs, and characters of several bytes.
func randomText(random *rand.Rand, length int) string {
	letters := []rune("abcdefghijklmnopqrstuvwxyz ABCDEFGHIJ 0123456789 .,;:!?'()<>|/\n\tßéλж中の🙂")
	text := make([]rune, length)
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}
