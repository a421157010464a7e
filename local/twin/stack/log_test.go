package stack_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/secretfile"
)

// TestLogOfARun reads the log lines of two runs of a job. One fails after heartbeats and prints
// a secret; a constraint skips the other. A line about a run has the run's attributes and the
// level of its event. No line has a secret.
func TestLogOfARun(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-of-the-report"
	data, log := t.TempDir(), &stacktest.Log{}
	config, err := served{Data: data}.Stack(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		show(t, log)
	})
	if err := secretfile.Folder(filepath.Join(data, stack.SecretsFolder)).Put("default", "report-key", secret); err != nil {
		t.Fatal(err)
	}
	c := client(t, s.Addresses())
	c.Token = s.Token()
	answer := c.Call(http.MethodPut, "/v1/jobs/report", `{
		"image": "exec:/bin/sh", "command": ["-c", "echo $API_KEY; sleep 2.5; exit 3"], "env": {"API_KEY": {"secretRef": "report-key"}},
		"constraints": {"requirePreviousSuccess": true}, "retryConfig": {"maxRetries": 0},
		"policy": {"heartbeatIntervalSeconds": 1, "heartbeatTimeoutSeconds": 20}}`, "If-None-Match", "*")
	if answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
	}
	var ids []string
	for range 2 {
		taskID, runID := fireSoon(t, c, "/v1/jobs/report/runs")
		c.End(taskID)
		ids = append(ids, runID)
	}
	levels := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(log.String()))
	for lines.Scan() {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("got %s: %v", lines.Text(), err)
		}
		if strings.Contains(lines.Text(), secret) || strings.Contains(lines.Text(), s.Token()) {
			t.Errorf("got a secret: %s", lines.Text())
		}
		message, _ := line["msg"].(string)
		id, of := line["run_id"].(string)
		if !of {
			if strings.Contains(lines.Text(), ids[0]) || strings.Contains(lines.Text(), ids[1]) {
				t.Errorf("got %s about a run without its run_id", lines.Text())
			}
			continue
		}
		levels[message] = line["level"].(string)
		for _, name := range []string{"task_id", "job_id", "scheduled_at", "attempt", "correlation_id"} {
			if line[name] == nil || line[name] == "" {
				t.Errorf("got line %s, want a %s", lines.Text(), name)
			}
		}
		if line["state"] == nil && message != "heartbeat" {
			t.Errorf("got line %s, want a state", lines.Text())
		}
		if want := line["job_id"].(string) + ":"; !strings.HasPrefix(id, want) {
			t.Errorf("got run %s of job %s", id, line["job_id"])
		}
	}
	for message, want := range map[string]string{
		"job.accepted": "INFO", "job.admitted": "INFO", "job.started": "INFO", "job.attempt_ended": "WARN", "job.failed": "ERROR",
		"job.constraint_violated": "WARN", "job.action_executed": "INFO", "job.skipped": "INFO", "heartbeat": "DEBUG",
	} {
		if levels[message] != want {
			t.Errorf("%s: got level %q, want %q", message, levels[message], want)
		}
	}
}

// fireSoon starts a run at one of the next seconds. On a slow host that time may have passed
// when the call arrives; then it calls again with a later time.
func fireSoon(t *testing.T, c *outside.Client, path string) (taskID, runID string) {
	t.Helper()
	for ahead := 2 * time.Second; ; ahead *= 2 {
		at := time.Now().Add(ahead).Truncate(time.Second).UTC()
		answer := c.Call(http.MethodPost, path, fmt.Sprintf(`{"scheduledAt": %q}`, at.Format(time.RFC3339)))
		if answer.Status == http.StatusAccepted {
			accepted := outside.Decode[struct{ TaskID, RunID string }](t, answer.Body)
			return accepted.TaskID, accepted.RunID
		}
		if ahead > time.Minute {
			t.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
		}
	}
}
