package stack_test

import (
	"fmt"
	"net/http"
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
	for kind, want := range map[platform.EngineKind]int{platform.EngineLlamaCpp: 7, platform.EngineVLLM: 64, platform.EngineTGI: 128, platform.EngineTriton: 64} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(engines.Handler(kind, mockengine.New(mockengine.Config{Clock: clock.System{}, Slots: 7})))
			t.Cleanup(server.Close)
			g := start(t, served{Engines: []stack.EngineAddress{{Kind: kind, URL: server.URL}}})
			pool := outside.Get[contract.Pool](g.Client, "/v1/pools/pool0")
			if pool.Limit != want {
				t.Errorf("got a pool of %d slots, want %d", pool.Limit, want)
			}
			if got := slotsOf(t, g, kind, pool.Engine.Model, server.URL); got != want {
				t.Errorf("got %d slots of a pool without a number, want %d", got, want)
			}
			if got := g.stack.Addresses().ModelSlots; len(got) != 1 || got[0] != want {
				t.Errorf("got %v slots at the start, want %d", got, want)
			}
		})
	}
}

// slotsOf puts a pool with two replicas and without slots. It returns the slots of one.
func slotsOf(t *testing.T, g *target, kind platform.EngineKind, model, url string) int {
	t.Helper()
	body := fmt.Sprintf(`{"engine": {"kind": %q, "model": %q, "replicas": [{"url": %q}, {"url": "%s/"}]}}`, kind, model, url, url)
	answer := g.Call(http.MethodPut, "/v1/pools/own", body)
	if answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want a pool", answer.Status, answer.Body)
	}
	p := outside.Decode[contract.Pool](t, answer.Body)
	if p.Limit != 2**p.Engine.Slots {
		t.Errorf("got a limit of %d with %d slots of each replica", p.Limit, *p.Engine.Slots)
	}
	return *p.Engine.Slots
}
