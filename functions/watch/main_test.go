package watch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/watch"
	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestEnvironmentIsChecked(t *testing.T) {
	t.Parallel()
	_, err := watch.ReadSettings([]string{"SORTIE_URL=sortie.example.org", "SORTIE_TENANT=-", "SORTIE_HEALTH_ADDRESS=here"})
	for _, want := range []string{"SORTIE_URL: ", "SORTIE_TENANT: ", "SORTIE_HEALTH_ADDRESS: ", "SORTIE_KUBERNETES_CLUSTER is not set", "SORTIE_ORCHESTRATOR is not set"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	var log bytes.Buffer
	if code := watch.Main(t.Context(), nil, &log, nil); code != 2 || !strings.Contains(log.String(), "SORTIE_URL is not set") {
		t.Errorf("got exit code %d, log %s, want 2 with the problems", code, &log)
	}
}

// one is a cluster with one machine that is gone.
type one struct{}

// Observed implements watch.Cluster.
func (one) Observed(context.Context) ([]port.MachineStatus, error) {
	return []port.MachineStatus{{
		Machine: port.Machine{Runner: "kubernetes", Cluster: "east", App: "runs", ID: "a.1"}, Phase: port.MachineGone,
		Owner: port.MachineOwner{Tenant: "default", RunID: "r", Attempt: 1},
	}}, nil
}

// healthAddress finds the address of /healthz in the log.
type healthAddress struct{ found chan string }

// Write implements io.Writer.
func (h healthAddress) Write(line []byte) (int, error) {
	var l struct{ Health string }
	if json.Unmarshal(line, &l) == nil && l.Health != "" {
		h.found <- l.Health
	}
	return len(line), nil
}

// TestAgentReportsAndShowsItsHealth runs the agent with a token in a file until its context ends.
func TestAgentReportsAndShowsItsHealth(t *testing.T) {
	t.Parallel()
	reported := make(chan string, 10)
	sortie := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reported <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"machines": [{"runId": "r", "attempt": 1, "result": "changed"}]}`)
	}))
	t.Cleanup(sortie.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("text-of-the-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	log, ended, closed := healthAddress{make(chan string, 1)}, make(chan int, 1), false
	go func() {
		ended <- watch.Main(ctx, []string{
			"SORTIE_URL=" + sortie.URL, "SORTIE_TOKEN_FILE=" + token, "SORTIE_KUBERNETES_CLUSTER=east", "SORTIE_ORCHESTRATOR=dev", "SORTIE_HEALTH_ADDRESS=127.0.0.1:0",
		}, log, func(watch.Settings, *slog.Logger) (watch.Cluster, func(), error) {
			return one{}, func() { closed = true }, nil
		})
	}()
	if got := <-reported; got != "Bearer text-of-the-token" {
		t.Errorf("got %q, want the token of the file", got)
	}
	address := "http://" + <-log.found
	await.Until(t, "ready agent", func() bool { return status(t, address+"/healthz") == http.StatusOK })
	if got := status(t, address+"/"); got != http.StatusNotFound {
		t.Errorf("got %d for another path, want 404", got)
	}
	cancel()
	if code := <-ended; code != 0 || !closed {
		t.Errorf("got exit code %d, closed %v, want 0 and the cluster closed", code, closed)
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestSettingsAreDocumented compares the list in README.md with the settings.
func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range watch.Documented() {
		name := s.Name
		if s.Default != "" {
			name += "=" + s.Default
		}
		if row := "- `" + name + "`: " + s.Meaning + "\n"; !strings.Contains(string(text), row) {
			t.Errorf("want the row %s", row)
		}
	}
}
