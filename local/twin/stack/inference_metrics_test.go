package stack_test

import (
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestMetricsOfTasks completes a task, cancels one, refuses two for different reasons, drains
// the pool and retires the model.
func TestMetricsOfTasks(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engines: mocked})
	if state := lastState(g, g.ask(3)); state != string(run.Completed) {
		t.Fatalf("got %s, want Completed", state)
	}
	cancelled := g.ask(2000)
	g.Call(http.MethodPost, "/v1/tasks/"+cancelled+"/cancel", "")
	if state := lastState(g, cancelled); state != string(run.Cancelled) {
		t.Fatalf("got %s, want Cancelled", state)
	}
	for _, row := range []struct {
		status int
		body   string
	}{
		{http.StatusNotFound, `{"model_ref":"other","prompt":"a"}`},
		{http.StatusTooManyRequests, `{"model_ref":"mock","prompt":"a","expected_tokens":1000000}`},
	} {
		if answer := g.Call(http.MethodPost, "/v1/tasks", row.body); answer.Status != row.status {
			t.Fatalf("%s: got %d, want %d", row.body, answer.Status, row.status)
		}
	}
	g.awaitMetrics(t,
		"tasks_enqueued_total 2\n", "tasks_canceled_total{reason=\"client\"} 1\n",
		"tasks_rejected_total{reason=\"model_unknown\"} 1\n", "tasks_rejected_total{reason=\"queue_full_drop_lru\"} 1\n",
		"admission_backpressure_events_total{policy=\"reject\"} 1\n",
		"pool_ready{pool_id=\"pool0\"} 1\n", "active_leases{pool_id=\"pool0\"} 0\n",
		"queue_depth{engine=\"mock\",engine_version=\"1\",pool_id=\"pool0\",priority=\"interactive\"} 0\n",
		"kv_cache_usage_ratio{engine=\"mock\",engine_version=\"1\",pool_id=\"pool0\",replica_id=\"r1\"} ",
		"latency_first_token_ms_count{engine=\"mock\",engine_version=\"1\",pool_id=\"pool0\",priority=\"normal\"} ",
		"latency_decode_ms_count{engine=\"mock\",engine_version=\"1\",pool_id=\"pool0\",priority=\"normal\"} ",
		"tasks_started_total ", "model_state{model_id=\"mock\",state=\"Active\"} 1\n",
	)
	if h := outside.Get[contract.PoolHealth](g.Client, "/v1/pools/pool0/health"); !h.Ready || len(h.Replicas) != 1 || !h.Replicas[0].Ready || h.Replicas[0].EngineVersion != "1" {
		t.Errorf("got %+v, want a pool with a replica that is ready", h)
	}
	for path, status := range map[string]int{"/v1/pools/pool0/drain": http.StatusAccepted, "/v1/catalog/models/mock/state": http.StatusOK} {
		body := ""
		if status == http.StatusOK {
			body = `{"state":"Retired"}`
		}
		if answer := g.Call(http.MethodPost, path, body); answer.Status != status {
			t.Fatalf("%s: got %d %s, want %d", path, answer.Status, answer.Body, status)
		}
	}
	g.awaitMetrics(t, "drain_events_total{pool_id=\"pool0\",reason=\"api_request\"} 1\n", "pool_ready{pool_id=\"pool0\"} 0\n",
		"model_state{model_id=\"mock\",state=\"Active\"} 0\n", "model_state{model_id=\"mock\",state=\"Retired\"} 1\n")
	if answer := g.Call(http.MethodPost, "/v1/catalog/models/mock/state", `{"state":"Active"}`); answer.Status != http.StatusOK {
		t.Fatalf("got %d %s", answer.Status, answer.Body)
	}
	if answer := g.Call(http.MethodPost, "/v1/pools/pool0/reload", ""); answer.Status != http.StatusOK {
		t.Fatalf("reload: got %d %s, want 200", answer.Status, answer.Body)
	}
	g.awaitMetrics(t, "pool_ready{pool_id=\"pool0\"} 1\n")
}
