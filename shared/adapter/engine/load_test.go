package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestLoadWithoutMetrics reads the load of a llama-server that has a request and was started
// without the option for metrics, and of one also without the option for slots.
func TestLoadWithoutMetrics(t *testing.T) {
	t.Parallel()
	const unserved = `{"error":{"code":501,"message":"This server does not support slots endpoint. Start it with --slots","type":"not_supported_error"}}`
	for name, row := range map[string]struct {
		slots  int // the status of the path
		body   string
		want   string
		failed fault.Code
	}{
		"slots":            {slots: http.StatusOK, want: "1"},
		"no slots":         {slots: http.StatusNotImplemented, body: unserved, want: "none"},
		"unknown path":     {slots: http.StatusNotFound, body: `{}`, want: "none"},
		"unreadable slots": {slots: http.StatusOK, body: `{"slots":2}`, want: "none", failed: fault.WorkerReset},
		"loading":          {slots: http.StatusServiceUnavailable, body: `{"error":{"message":"Loading model"}}`, want: "none", failed: fault.PoolUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mock := mockengine.New(mockengine.Config{Clock: clock.System{}, Slots: 3})
			mock.FailNext(mockengine.FailStall, 0)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = mock.Generate(ctx, port.Generation{Prompt: "x", MaxTokens: 1}, func(port.Piece) error { return nil })
			}()
			defer func() { stop(); <-done }()
			mock.WaitRunning(1)
			served := engines.Handler(platform.EngineLlamaCpp, mock)
			e := serve(t, engine.Config{Kind: platform.EngineLlamaCpp}, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/metrics":
					w.WriteHeader(http.StatusNotImplemented)
					fmt.Fprint(w, unserved)
				case r.URL.Path == "/slots" && row.body != "":
					w.WriteHeader(row.slots)
					fmt.Fprint(w, row.body)
				default:
					served.ServeHTTP(w, r)
				}
			})
			load, err := e.Load(t.Context())
			if f := fault.Of(err); err != nil && f.Code != row.failed || err == nil && row.failed != "" {
				t.Fatalf("got %v, want the fault %q", err, row.failed)
			}
			got := "none"
			if load.Running != nil {
				got = fmt.Sprint(*load.Running)
			}
			if got != row.want {
				t.Errorf("got %s running requests, want %s", got, row.want)
			}
		})
	}
}
