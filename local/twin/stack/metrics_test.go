package stack_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// TestMetricsOfTheStack runs two programs and reads the metrics repeatedly. They count
// each run once.
func TestMetricsOfTheStack(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-the-operator"
	s := start(t, served{Settings: map[string]string{"AUTH_TOKEN": token}})
	if answer := s.Call(http.MethodGet, "/metrics", ""); answer.Status != http.StatusUnauthorized {
		t.Errorf("without a token: got %d, want 401", answer.Status)
	}
	s.Token = token
	for _, command := range []string{"true", "false"} {
		answer := s.Call(http.MethodPost, "/v1/runs", `{"image": "exec:/bin/`+command+`", "retryConfig": {"maxRetries": 0}}`)
		var accepted struct{ TaskID string }
		if err := json.Unmarshal(answer.Body, &accepted); err != nil || answer.Status != http.StatusAccepted {
			t.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
		}
		s.End(accepted.TaskID)
	}
	for range 2 {
		answer := s.Call(http.MethodGet, "/metrics", "", "X-Correlation-Id", "from-the-client")
		if answer.Status != http.StatusOK || answer.Header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
			t.Fatalf("got %d %s, want 200 and text", answer.Status, answer.Header)
		}
		if id := answer.Header.Get("X-Correlation-Id"); id == "" || id == "from-the-client" {
			t.Errorf("got correlation id %q, want a new one", id)
		}
		text := string(answer.Body)
		if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
			t.Errorf("got problems %v (%v), want none", problems, err)
		}
		for _, line := range []string{
			`sortie_runs_total{kind="job",skipped="false",state="Completed"} 1`,
			`sortie_runs_total{kind="job",skipped="false",state="Failed"} 1`,
			`sortie_run_execution_seconds_count{kind="job"} 2`,
			`sortie_run_total_seconds_count{kind="job"} 2`,
			`sortie_pool_slots_limit{pool="default",tenant="default"} 16`,
			`sortie_pool_slots_held{pool="default",tenant="default"} 0`,
		} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("got no line %s in\n%s", line, text)
			}
		}
	}
}
