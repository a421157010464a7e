package stack_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
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
	s.Token = s.stack.Token()
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
		if problems, err := porttest.LintMetrics([]byte(text)); err != nil || len(problems) > 0 {
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

// TestMetricsOfEvents runs an export with a reader of each transport, and with webhooks that
// accept, refuse and do not answer.
func TestMetricsOfEvents(t *testing.T) {
	t.Parallel()
	g := start(t, served{Play: "success", Settings: withLoopbackHooks})
	accepts, refuses := receiveEvents(t), receiveEvents(t)
	refuses.status = http.StatusBadRequest
	for _, url := range []string{accepts.URL, refuses.URL} {
		if answer := g.Call(http.MethodPost, "/v1/webhooks", `{"url":"`+url+`","eventTypes":["job.*"]}`); answer.Status != http.StatusCreated {
			t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
		}
	}
	if answer := g.Call(http.MethodPost, "/v1/webhooks", `{"url":"`+accepts.URL+`","paused":true}`); answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.Addresses.URL+"/v1/events/stream", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	sse, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer sse.Body.Close()
	socket, _, err := websocket.Dial(t.Context(), strings.Replace(g.Addresses.URL, "http", "ws", 1)+"/v1/events/ws", nil) //nolint:bodyclose // Dial documents that it needs no close
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	g.awaitMetrics(t, `sortie_stream_readers{transport="sse"} 1`, `sortie_stream_readers{transport="websocket"} 1`)
	g.End(g.post(contract.ExportOptions{}))
	accepts.await(t, eventtype.Completed)
	<-refuses.tried
	sent := 0
	for line := bufio.NewScanner(sse.Body); line.Scan(); {
		if strings.HasPrefix(line.Text(), "event: job.") {
			sent++
		}
		if line.Text() == "event: "+string(eventtype.Completed) {
			break
		}
	}
	if sent == 0 {
		t.Fatal("got no event, want some")
	}
	_ = socket.CloseNow()
	// Deliveries continue. When they have ended, the count equals the receiver's.
	await.Until(t, "count of the deliveries in the metrics", func() bool {
		text := string(g.Call(http.MethodGet, "/metrics", "").Body)
		accepts.mu.Lock()
		defer accepts.mu.Unlock()
		return strings.Contains(text, fmt.Sprintf("\nsortie_webhook_attempts_total{outcome=\"2xx\"} %d\n", len(accepts.got)))
	})
	g.awaitMetrics(t,
		`sortie_webhook_attempts_total{outcome="4xx"} `,
		`sortie_webhook_attempt_seconds_count `,
		`sortie_webhooks{state="paused"} 1`,
		`sortie_webhooks{state="active"} `,
		`sortie_webhook_deliveries_waiting `,
		`sortie_stream_readers{transport="websocket"} 0`,
		`sortie_stream_readers_ended_total{reason="gone",transport="websocket"} 1`,
		`sortie_stream_events_sent_total{transport="sse"} `,
		`sortie_stream_events_sent_total{transport="websocket"} `,
		`sortie_relay_events_total `,
		"sortie_relay_lag_seconds{target=\"feed\"} 0\n",
		"sortie_relay_lag_seconds{target=\"webhooks\"} 0\n",
	)
	// This stack has no bus, so it reports no lag of a bus.
	if text := string(g.Call(http.MethodGet, "/metrics", "").Body); strings.Contains(text, `target="bus"`) {
		t.Errorf("got a lag of the bus, want none:\n%s", text)
	}
}

// awaitMetrics waits until the metrics have lines that start with each text.
func (g *target) awaitMetrics(t *testing.T, starts ...string) {
	t.Helper()
	var text, missing string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		text, missing = "\n"+string(g.Call(http.MethodGet, "/metrics", "").Body), ""
		for _, start := range starts {
			if !strings.Contains(text, "\n"+start) {
				missing = start
			}
		}
		if missing == "" {
			if problems, err := porttest.LintMetrics([]byte(text)); err != nil || len(problems) > 0 {
				t.Errorf("got problems %v (%v), want none", problems, err)
			}
			return
		}
	}
	t.Fatalf("got no line %q within a minute in%s", missing, text)
}
