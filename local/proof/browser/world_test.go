//go:build browser

package browser_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

// world is a server with jobs, runs, events and webhooks.
type world struct {
	*server
	// gate is the file for which the waiting programs wait.
	gate string
	// completed, failed, retried, running and queued are runs. export is one of the sample.
	completed, failed, retried, running, queued, export string
	// fanned is a run with children, of which one has failed.
	fanned string
	// answer is an inference task in the session "demo". webhook has deliveries. artifact is a
	// JSON document with the tag of the completed run.
	answer, webhook, artifact string
}

// shared returns the world that tests share. They do not change its runs.
func shared(t *testing.T) *world {
	t.Helper()
	w, err := tools.shared()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// waiting is a program that ends when the file GATE exists.
const waiting = `echo "waiting for $GATE"; while [ ! -e "$GATE" ]; do sleep 0.1; done; echo opened`

// sample is the collection of the sample.
const sample = "01K9XVBAQZF9EHDRXGBEADTZYY"

// jobs are the stored jobs.
func jobs(gate string) []object {
	return []object{
		{
			"id": "nightly-report", "name": "Sales of the day", "image": "exec:/bin/sh", "schedule": "30 2 * * *", "timeZone": "Europe/Berlin",
			"command": []string{"-c", `echo "reading orders of $REGION"; echo "region,orders" >report.csv; echo "$REGION,1204" >>report.csv; echo "wrote report.csv"`},
			"env":     object{"REGION": "north"}, "output": object{"path": "report.csv", "contentType": "text/csv"},
		},
		{
			"id": "import-orders", "name": "Orders from the shop", "image": "exec:/bin/sh", "schedule": "*/15 * * * *",
			"command":     []string{"-c", `echo "connecting to shop.example.org"; echo "HTTP 503 from the shop: try again later" >&2; exit 3`},
			"retryConfig": object{"maxRetries": 0},
		},
		{
			"id": "resize-images", "name": "Thumbnails", "image": "exec:/bin/sh", "pool": "narrow",
			"command": []string{"-c", waiting}, "env": object{"GATE": gate},
		},
		{
			"id": "fetch-pages", "name": "Pages of the catalogue", "image": "exec:/bin/sh", "maxParallel": 3, "maxFailures": 2, "retryConfig": object{"maxRetries": 0},
			"command": []string{"-c", `case "$SORTIE_ITEM" in lost*) echo "404: no page $SORTIE_ITEM" >&2; exit 4;; esac; echo "fetched $SORTIE_ITEM"`},
			"items":   []string{"page-1", "page-2", "lost-page", "page-3", bidi, "page-4"},
		},
		{"id": "extract", "image": "exec:/bin/true"},
		{"id": "prices", "image": "exec:/bin/true"},
		{"id": "load", "name": "Load the warehouse", "image": "exec:/bin/true", "after": []string{"extract", "prices"}},
	}
}

// populate makes the world.
func populate(s *server) (w *world, err error) {
	w = &world{server: s, gate: filepath.Join(tools.work, "gate")}
	if _, err := s.cli("pools", "set", "narrow", "--limit", "1"); err != nil {
		return nil, err
	}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	created, err := s.call(http.MethodPost, "/v1/webhooks", object{"url": hook.URL + "/sortie", "eventTypes": []string{"job.failed", "job.completed"}, "description": "chat of the team"})
	if err != nil {
		return nil, err
	}
	w.webhook = fmt.Sprint(created["id"])
	for _, job := range jobs(w.gate) {
		if _, err := s.call(http.MethodPut, "/v1/jobs/"+fmt.Sprint(job["id"]), job); err != nil {
			return nil, err
		}
	}
	if _, err := s.call(http.MethodPost, "/v1/jobs/import-orders/pause", nil); err != nil {
		return nil, err
	}
	return w, errors.Join(w.runs(), w.others())
}

// job runs a stored job and waits for a state.
func (s *server) job(id, state string) (string, error) {
	answer, err := s.call(http.MethodPost, "/v1/jobs/"+id+"/runs", object{})
	if err != nil {
		return "", err
	}
	run := fmt.Sprint(answer["taskId"])
	return run, s.await(run, state)
}

// parent runs a job with items, waits for the end and returns the id of the run. Those of its
// children begin with it.
func (s *server) parent(id string) (string, error) {
	task, err := s.job(id, "Completed")
	if err != nil {
		return "", err
	}
	answer, err := s.call(http.MethodGet, "/v1/runs/"+task, nil)
	return fmt.Sprint(answer["runId"]), err
}

func (w *world) runs() (err error) {
	if w.completed, err = w.job("nightly-report", "Completed"); err != nil {
		return err
	}
	if w.failed, err = w.job("import-orders", "Failed"); err != nil {
		return err
	}
	if w.fanned, err = w.parent("fetch-pages"); err != nil {
		return err
	}
	if w.running, err = w.job("resize-images", "Running"); err != nil {
		return err
	}
	if w.queued, err = w.job("resize-images", "Pending"); err != nil {
		return err
	}
	w.retried, err = w.shell(`mkdir "$PLACE" 2>/dev/null && { echo "no connection" >&2; exit 1; }; printf '\033[32mconnected\033[0m\n'`, object{
		"env":         object{"PLACE": filepath.Join(tools.work, "second")},
		"retryConfig": object{"maxRetries": 1, "initialDelay": "1s"},
	})
	if err != nil {
		return err
	}
	if err := w.await(w.retried, "Completed"); err != nil {
		return err
	}
	return nil
}

func (w *world) others() error {
	stored, err := w.call(http.MethodPost, "/v1/artifacts", object{"kind": "note", "content": object{"orders": 1204}, "tags": []string{"task:" + w.completed}})
	if err != nil {
		return err
	}
	w.artifact = fmt.Sprint(stored["id"])
	exported, err := w.call(http.MethodPost, "/export/mods", object{"pi": sample, "options": object{"recursive": true}})
	if err != nil {
		return err
	}
	w.export = fmt.Sprint(exported["task_id"])
	if err := w.await(w.export, "Completed"); err != nil {
		return err
	}
	if _, err := w.cli("ask", "mock", "Tell a story", "--max-tokens", "40", "--session", "demo"); err != nil {
		return err
	}
	listed, err := w.call(http.MethodGet, "/v1/runs?kind=inference", nil)
	if err != nil {
		return err
	}
	w.answer = fmt.Sprint(listed["tasks"].([]any)[0].(map[string]any)["taskId"]) //nolint:forcetypeassert // the document of the API
	return nil
}
