//go:build engines

package engine_test

import (
	"context"
	"errors"
	"os"
	"strings"
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

// install returns an inference server, which is not started.
func install(t *testing.T, kind platform.EngineKind) *servers.Engine {
	t.Helper()
	installed, err := servers.Install(t.Context(), kind, os.Environ(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	return installed
}

// startServer starts an inference server for a test. Its folder is a new one.
func startServer(t *testing.T, installed *servers.Engine, o servers.Options) *servers.Server {
	t.Helper()
	o.Folder = t.TempDir()
	server, err := installed.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Kill()
		if t.Failed() {
			t.Logf("the server's output:\n%s", server.Log())
		}
	})
	return server
}

// adapt returns an adapter for an inference server.
func adapt(t *testing.T, kind platform.EngineKind, server *servers.Server) (*engine.Engine, *clock.Virtual) {
	t.Helper()
	now := clock.NewVirtual(start)
	e, err := engine.New(engine.Config{Kind: kind, URL: server.URL, MetricsURL: server.MetricsURL, Slots: 2, ContextTokens: 2048, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, now
}

// launch starts an inference server and returns it with an adapter.
func launch(t *testing.T, installed *servers.Engine, kind platform.EngineKind) (*servers.Server, *engine.Engine, *clock.Virtual) {
	t.Helper()
	server := startServer(t, installed, servers.Options{})
	e, now := adapt(t, kind, server)
	return server, e, now
}

// TestRealEngines runs the suite on real inference servers, and makes them fail within an
// answer. Each test has its own server, which starts quickly. TestRealVLLM is for the server
// that starts slowly.
func TestRealEngines(t *testing.T) {
	t.Parallel()
	for _, kind := range []platform.EngineKind{platform.EngineLlamaCpp, platform.EngineTriton} {
		t.Run(string(kind), func(t *testing.T) { // sequential, because they have many processes
			installed := install(t, kind)
			porttest.Engine(t, func(t *testing.T) porttest.EngineHarness {
				server, e, now := launch(t, installed, kind)
				h := porttest.EngineHarness{
					Engine: e, Clock: now, Model: server.Model,
					Idle: func(t *testing.T) { waitIdle(t, e) },
					Shut: func(*testing.T) { server.Kill() },
				}
				switch kind {
				case platform.EngineLlamaCpp:
					h.Messages, h.Stops = true, true
				case platform.EngineTriton:
					h.Names, h.Idle = true, func(t *testing.T) { awaitEnds(t, server) }
				}
				return h
			})
			t.Run("killed within an answer", func(t *testing.T) {
				t.Parallel()
				server, e, _ := launch(t, installed, kind)
				failWithin(t, e, server, func() { server.Signal(syscall.SIGKILL) }, nil, fault.WorkerReset)
			})
			t.Run("stopped within an answer", func(t *testing.T) {
				t.Parallel()
				server, e, now := launch(t, installed, kind)
				failWithin(t, e, server, func() { server.Signal(syscall.SIGSTOP) }, now, fault.DecodeTimeout)
			})
		})
	}
}

// failWithin calls fail when the server has generated a piece of a long answer. With a clock,
// it advances the clock past the limit between two pieces.
func failWithin(t *testing.T, e port.Engine, server *servers.Server, fail func(), now *clock.Virtual, want fault.Code) {
	t.Helper()
	done := generateUntil(t, e, server, fail)
	if now != nil {
		pass(now, done)
	}
	if err := <-done; !fault.Is(err, want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// generateUntil starts a long answer, calls fail at the first piece and returns. The channel
// receives the error of the answer, nil if it is complete.
func generateUntil(t *testing.T, e port.Engine, server *servers.Server, fail func()) <-chan error {
	t.Helper()
	pieces, failed := 0, make(chan struct{})
	done := make(chan error, 1)
	g := port.Generation{Model: server.Model, Prompt: "the archive", MaxTokens: 1500, Limits: port.GenerationLimits{Gap: time.Minute}}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute) // the clock of the limits may not advance
	go func() {
		defer stop()
		end, err := e.Generate(ctx, g, func(port.Piece) error {
			if pieces++; pieces == 1 {
				fail()
				close(failed)
			}
			return nil
		})
		if err == nil {
			err = errors.New("an end with the reason " + string(end.Finish))
		}
		done <- err
	}()
	<-failed
	return done
}

// pass advances the clock until an answer has ended.
func pass(now *clock.Virtual, done <-chan error) {
	for len(done) == 0 {
		if _, waits := now.Next(); waits {
			now.Advance(time.Second)
		}
	}
}

// waitIdle waits until the engine has no request.
func waitIdle(t *testing.T, e port.Engine) {
	t.Helper()
	for {
		load, err := e.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if load.Running == nil || *load.Running == 0 {
			return
		}
	}
}

// awaitEnds waits until the log of a Triton has the end of each request, because Triton does
// not report running requests.
func awaitEnds(t *testing.T, server *servers.Server) {
	t.Helper()
	for {
		log := server.Log()
		if strings.Count(log, "request begins") == strings.Count(log, "request ends") {
			return
		}
		if err := clock.Sleep(t.Context(), clock.System{}, 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}
