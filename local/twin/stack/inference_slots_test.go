package stack_test

import (
	"net/http/httptest"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestSlotsOfAServer starts with a server that reports its number of slots, and with one that
// does not. Each start shows the number.
func TestSlotsOfAServer(t *testing.T) {
	t.Parallel()
	for kind, want := range map[platform.EngineKind]int{platform.EngineLlamaCpp: 7, platform.EngineVLLM: 64} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(engines.Handler(kind, mockengine.New(mockengine.Config{Clock: clock.System{}, Slots: 7})))
			t.Cleanup(server.Close)
			g := start(t, served{Engines: []stack.EngineAddress{{Kind: kind, URL: server.URL}}})
			pool := outside.Get[contract.Pool](g.Client, "/v1/pools/pool0")
			if pool.Limit != want {
				t.Errorf("got a pool of %d slots, want %d", pool.Limit, want)
			}
			if got := g.stack.Addresses().ModelSlots; len(got) != 1 || got[0] != want {
				t.Errorf("got %v slots at the start, want %d", got, want)
			}
		})
	}
}
