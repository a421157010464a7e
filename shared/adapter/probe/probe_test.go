package probe_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/adapter/probe"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer  http.HandlerFunc
		reached bool
	}{
		"a Sortie":            {says(http.StatusOK, acknowledged), true},
		"a refused token":     {says(http.StatusUnauthorized, acknowledged), false},
		"an error":            {says(http.StatusBadGateway, acknowledged), false},
		"an outage of Sortie": {says(http.StatusServiceUnavailable, `{"status":503,"code":"UNAVAILABLE"}`), false},
		"another service":     {says(http.StatusOK, `<html>`), false},
		"another JSON":        {says(http.StatusOK, `{"status":"ok","version":"v1"}`), false},
		"a redirect":          {http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP, false},
		"no answer":           {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(row.answer)
			t.Cleanup(server.Close)
			if err := probe.New(server.URL, "canary")(t.Context(), "token"); (err == nil) != row.reached {
				t.Errorf("got %v", err)
			}
		})
	}
	server := httptest.NewServer(says(http.StatusOK, ""))
	server.Close()
	if err := probe.New(server.URL, "canary")(t.Context(), "token"); err == nil {
		t.Error("no server: got success")
	}
}

// acknowledged is Sortie's response to a heartbeat.
const acknowledged = `{"acknowledged":true,"shouldCancel":false,"serverTime":"2026-01-02T03:04:05Z"}`

// TestCanaryTakesTheWholePath sends canaries to a server whose routes or whose store fail.
func TestCanaryTakesTheWholePath(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return callback.Routes(s.Workers, s.Intake) })
	var broken atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		stage.Server.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	records := runs.NewRecords(stage.Store, stage.Clock, slog.New(slog.DiscardHandler))
	tokens := grants.NewTokens(stage.Signer, stage.Clock, func(n int) string { return strings.Repeat("0", 2*n) })
	reception := runs.NewReception(records, tokens, probe.New(front.URL, runs.CanaryTask), runs.Config{})
	want := func(received bool) {
		t.Helper()
		stage.Clock.Advance(time.Minute)
		err := reception.Record(t.Context())
		recorded, failed := stage.Store.Reception(t.Context())
		if (err == nil) != received || failed != nil || recorded.At.Equal(stage.Clock.Now()) != received {
			t.Errorf("got %v and a canary at %s (%v), want received %t", err, recorded.At, failed, received)
		}
	}
	want(true)
	broken.Store(true)
	want(false)
	broken.Store(false)
	want(true)
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}
