package stack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestContextOfARestartedEngine restarts an engine with another context length. The server's
// model then has the new context length.
func TestContextOfARestartedEngine(t *testing.T) {
	t.Parallel()
	var engine atomic.Pointer[http.Handler]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*engine.Load()).ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	given := served{Data: t.TempDir(), Engines: []stack.EngineAddress{{Kind: platform.EngineLlamaCpp, URL: server.URL}}}
	for _, row := range []struct{ context, fits, over int }{{131072, 100_000, 131_073}, {4096, 4096, 8192}, {65536, 65536, 100_000}} {
		handler := engines.Handler(platform.EngineLlamaCpp, mockengine.New(mockengine.Config{Clock: clock.System{}, ContextTokens: row.context}))
		engine.Store(&handler)
		g := start(t, given)
		if found := outside.Get[contract.Capabilities](g.Client, "/v1/capabilities"); len(found.Engines) != 1 || found.Engines[0].CtxMax != row.context {
			t.Errorf("got %+v, want ctx_max %d", found.Engines, row.context)
		}
		if m := outside.Get[contract.Model](g.Client, "/v1/catalog/models/"+g.Models[0]); m.ContextTokens != 0 {
			t.Errorf("got context_tokens %d in the catalog, want 0: that of the engine", m.ContextTokens)
		}
		answer := g.Call(http.MethodPost, "/v1/tasks", fmt.Sprintf(`{"model_ref":%q,"prompt":"a","ctx":%d}`, g.Models[0], row.over))
		if problem := outside.Decode[contract.Problem](t, answer.Body); answer.Status != 400 || problem.Code != "INVALID_PARAMS" || problem.Field != "ctx" {
			t.Errorf("ctx %d of %d: got %d %s, want 400 INVALID_PARAMS with the field ctx", row.over, row.context, answer.Status, answer.Body)
		}
		if state := lastState(g, g.create(contract.TaskRequest{Prompt: "a", Ctx: &row.fits, MaxTokens: new(2)})); state != string(run.Completed) {
			t.Errorf("ctx %d of %d: got %s, want Completed", row.fits, row.context, state)
		}
		if err := g.stack.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
