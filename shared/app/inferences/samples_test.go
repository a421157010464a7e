package inferences_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// TestSamplesOfAnAnswer compares the events of a stream and the artifact of its transcript
// with the samples in testdata/samples/answer. -rewrite records them again.
func TestSamplesOfAnAnswer(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	task := h.ask(3, inSession("talk"))
	events := h.read(task, inference.EventID{})
	r := h.ended(task)
	datadriven.RunTest(t, filepath.Join("testdata", "samples", "answer"), func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		switch d.Cmd {
		case "stream", "metrics": // their place and their values depend on the time
			for _, e := range events {
				if (e.Name == inference.NameMetrics) != (d.Cmd == "metrics") {
					continue
				}
				if d.Cmd == "metrics" {
					e.Data = inference.Metrics{}
				}
				data, err := json.Marshal(e.Data)
				h.ok(err)
				fmt.Fprintf(&out, "event: %s\ndata: %s\n", e.Name, data)
			}
		case "trace":
			a, content, err := h.artifacts.Artifact(t.Context(), client, r.Generation.Trace)
			h.ok(err)
			text, err := io.ReadAll(content)
			h.ok(err)
			summary, err := json.Marshal(api.ArtifactSummary(a))
			h.ok(err)
			fmt.Fprintf(&out, "%s\n%s\n", summary, text)
		}
		return strings.ReplaceAll(out.String(), task, "inf_TASK")
	})
}

// lines is a log in memory.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// TestLogNamesTheVersions reads the log of a task: its lines have the correlation id, the
// version of the sampling parameters and, if known, that of the engine.
func TestLogNamesTheVersions(t *testing.T) {
	t.Parallel()
	log := &lines{}
	h := newInferring(t, 1, 1, func(h *inferring) { h.log = slog.NewJSONHandler(log, nil) })
	task := h.ask(3, func(in *inferences.NewTask) { in.SamplerProfile, in.CorrelationID = "warm-2", "mine" })
	h.ended(task)
	h.stop()
	known := map[string]bool{}
	for line := range strings.Lines(log.text.String()) {
		var entry map[string]any
		h.ok(json.Unmarshal([]byte(line), &entry))
		if entry["task_id"] != task {
			continue
		}
		if entry["sampler_profile_version"] != "warm-2" || entry["engine"] != "mock" || entry["correlation_id"] != "mine" {
			t.Errorf("got the line %s, want the versions and the correlation id", line)
		}
		if entry["engine_version"] == "1" {
			known[fmt.Sprint(entry["msg"])] = true
		}
	}
	if !known["the engine's answer has ended"] {
		t.Errorf("got the lines with the engine's version %v of\n%s, want that of the answer", known, log.text.String())
	}
}

// TestSessionSurvivesARestart closes the store between two tasks of a session.
func TestSessionSurvivesARestart(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	h.limit(budget.SessionScope("talk"), budget.Limit{Turns: new(int64(1))})
	h.ended(h.ask(3, inSession("talk")))
	before := h.account(budget.SessionScope("talk"))
	h.stop()
	h.ok(h.close())
	h.open()
	h.stop = nil
	h.restart()
	if after := h.account(budget.SessionScope("talk")); after.Spent != before.Spent || after.Spent.Turns != 1 || !after.ExpiresAt.Equal(before.ExpiresAt) {
		t.Errorf("got %+v, want %+v", after, before)
	}
	if f := h.refused(3, inSession("talk")); f.Code != fault.SessionClosed {
		t.Errorf("got %v, want the turns of the session counted on", f)
	}
}
