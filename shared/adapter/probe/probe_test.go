package probe_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/shared/adapter/probe"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/httpkit/apitest"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer  http.HandlerFunc
		reached bool
	}{
		"a Sortie":            {says(http.StatusUnauthorized, refusal), true},
		"an error":            {says(http.StatusBadGateway, refusal), false},
		"an outage of Sortie": {says(http.StatusServiceUnavailable, `{"status":503,"code":"UNAVAILABLE"}`), false},
		"another service":     {says(http.StatusUnauthorized, `<html>`), false},
		"another JSON":        {says(http.StatusUnauthorized, `{"message":"Unauthorized"}`), false},
		"no authentication":   {says(http.StatusOK, `{"status":"ok","version":"v1"}`), false},
		"a redirect":          {http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP, false},
		"no answer":           {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(row.answer)
			t.Cleanup(server.Close)
			if err := probe.New(server.URL)(t.Context()); (err == nil) != row.reached {
				t.Errorf("got %v", err)
			}
		})
	}
	server := httptest.NewServer(says(http.StatusOK, ""))
	server.Close()
	if err := probe.New(server.URL)(t.Context()); err == nil {
		t.Error("no server: got success")
	}
}

// refusal is Sortie's response to an invalid token.
const refusal = `{"type":"urn:sortie:problem:unauthenticated","status":401,"code":"UNAUTHENTICATED"}`

// TestProbeCallsTheWorkerAPI: only that route shows that heartbeats are
// accepted.
func TestProbeCallsTheWorkerAPI(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *orchestrator.System) []httpkit.Route { return callback.Routes(s.Workers) })
	var broken atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() && r.Method == http.MethodPost {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		stage.Server.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	if err := probe.New(front.URL)(t.Context()); err != nil {
		t.Errorf("Sortie that accepts heartbeats: got %v", err)
	}
	broken.Store(true)
	if err := probe.New(front.URL)(t.Context()); err == nil {
		t.Error("no heartbeats accepted: got success")
	}
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}
