package engine_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestReplicasKeepTheirEngines requests the engines of equal and of different replicas.
func TestReplicasKeepTheirEngines(t *testing.T) {
	t.Parallel()
	r := engine.NewReplicas(clock.System{}, engine.Services{Secrets: noSecrets{}}, func(slots int) port.Engine {
		return mockengine.New(mockengine.Config{Clock: clock.System{}, Slots: slots})
	})
	of := func(kind platform.EngineKind, slots int, replica platform.EngineReplica) port.Engine {
		found, err := r.Of("t", platform.EnginePlace{Kind: kind, Slots: slots}, replica)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	server, mock := platform.EngineReplica{ID: "r1", URL: "http://127.0.0.1:1"}, platform.EngineReplica{ID: "r1"}
	for name, same := range map[string][2]port.Engine{
		"a server":           {of(platform.EngineVLLM, 1, server), of(platform.EngineVLLM, 1, server)},
		"of another replica": {of(platform.EngineVLLM, 1, server), of(platform.EngineVLLM, 1, platform.EngineReplica{ID: "r2", URL: server.URL})},
		"a mock":             {of(platform.EngineMock, 1, mock), of(platform.EngineMock, 1, mock)},
	} {
		if same[0] != same[1] {
			t.Errorf("%s: got two engines, want one", name)
		}
	}
	for name, other := range map[string][2]port.Engine{
		"another address": {of(platform.EngineVLLM, 1, server), of(platform.EngineVLLM, 1, platform.EngineReplica{ID: "r1", URL: "http://127.0.0.1:2"})},
		"other slots":     {of(platform.EngineVLLM, 1, server), of(platform.EngineVLLM, 2, server)},
		"another mock":    {of(platform.EngineMock, 1, mock), of(platform.EngineMock, 1, platform.EngineReplica{ID: "r2"})},
	} {
		if other[0] == other[1] {
			t.Errorf("%s: got one engine, want two", name)
		}
	}
	if _, err := r.Of("t", platform.EnginePlace{Kind: platform.EngineVLLM}, platform.EngineReplica{URL: "no address"}); err == nil {
		t.Error("got an engine without an address, want an error")
	}
}
