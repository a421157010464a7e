package engine_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// setup serves the protocol of an engine and returns an adapter for it.
func setup(t *testing.T, kind platform.EngineKind) (*engine.Engine, *mockengine.Engine, *httptest.Server, *clock.Virtual) {
	t.Helper()
	mock := mockengine.New(mockengine.Config{Clock: clock.System{}, Model: "tiny", Slots: 2})
	now := clock.NewVirtual(start)
	if kind == platform.EngineOpenAI {
		e, server := secure(t, now, engines.Keyed(engines.Handler(kind, mock), func(key string) bool { return key == serviceKey }), fixed(serviceKey))
		return e, mock, server, now
	}
	server := httptest.NewServer(engines.Handler(kind, mock))
	t.Cleanup(server.Close)
	e, err := engine.New(engine.Config{Kind: kind, URL: server.URL, Slots: 2, ContextTokens: 4096, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, mock, server, now
}

// planned maps the faults of the suite to failures of the mock.
var planned = map[porttest.EngineFault]mockengine.Failure{
	porttest.EngineIsBusy: mockengine.FailBusy, porttest.EngineFails: mockengine.FailStart, porttest.EngineResets: mockengine.FailReset,
	porttest.EngineEndsEarly: mockengine.FailEarly, porttest.EngineSendsError: mockengine.FailError, porttest.EngineStalls: mockengine.FailStall,
}

func TestEngines(t *testing.T) {
	t.Parallel()
	for _, kind := range platform.EngineServers() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			service := kind == platform.EngineOpenAI
			openAI := kind == platform.EngineLlamaCpp || kind == platform.EngineVLLM || service
			porttest.Engine(t, func(t *testing.T) porttest.EngineHarness {
				e, mock, server, now := setup(t, kind)
				h := porttest.EngineHarness{
					Engine: e, Clock: now, Model: "tiny", Messages: openAI, Stops: true, Vectors: openAI,
					Names: kind == platform.EngineVLLM || kind == platform.EngineTriton || service, Silent: service, Reasons: openAI, Calls: openAI, Counts: kind == platform.EngineVLLM,
					Idle:  func(*testing.T) { mock.WaitRunning(0) },
					Fault: func(_ *testing.T, how porttest.EngineFault, pieces int) { mock.FailNext(planned[how], pieces) },
					Begun: func(*testing.T) { mock.WaitRunning(1) },
					Loading: func(_ *testing.T, loading bool) {
						mock.SetLoading(loading)
					},
					Shut: func(*testing.T) { server.Close() },
				}
				if service {
					h.Loading = nil // it has no such phase
				}
				return h
			})
		})
	}
}
