package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/sortie/conformance"
	"github.com/sortie-dev/sortie/shared/base/clock"
	sdk "github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// withEnvelope connects the worker to a control plane of the worker contract, with
// the system clock.
func withEnvelope(t *testing.T, b *bench, answer func(c *conformance.Call, n int) *conformance.Answer) *conformance.Plane {
	t.Helper()
	b.ports.Clock = clock.System{}
	p, err := conformance.NewPlane(clock.System{}, contract.TaskEnvelope{
		TaskID: b.config.TaskID, Attempt: 2, HeartbeatIntervalMS: 20, HeartbeatTimeoutMS: 600_000, CancelGracePeriodMS: 600_000,
	}, answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	envelope := p.Envelope()
	b.config.Envelope, b.config.CallbackURL = &envelope, ""
	return p
}

func last(t *testing.T, p *conformance.Plane, endpoint string) map[string]any {
	t.Helper()
	var fields map[string]any
	for _, c := range p.Calls() {
		if c.Endpoint == endpoint {
			fields = c.Fields
		}
	}
	if fields == nil {
		t.Fatalf("got no %s", endpoint)
	}
	return fields
}

// TestEnvelopeSelectsTheWorkerContract checks that the output goes to the bucket with
// credentials, and to the envelope's URL without.
func TestEnvelopeSelectsTheWorkerContract(t *testing.T) {
	t.Parallel()
	for _, credentials := range []bool{true, false} {
		b := newBench(t, "mods", recursive())
		b.archive.add(0, pinax("root"), 1)
		b.archive.add(1, pinax("one"))
		sent := make(chan struct{}, 100)
		p := withEnvelope(t, b, func(c *conformance.Call, _ int) *conformance.Answer {
			if c.Endpoint == "heartbeat" && c.Fields["progressPct"] != nil {
				sent <- struct{}{}
			}
			return nil
		})
		b.archive.answers["/entities/"+testPI(1)] = func(w http.ResponseWriter, r *http.Request, _ int) {
			<-sent
			b.archive.serve(w, r)
		}
		key := b.config.Key()
		if !credentials {
			b.ports.Outputs, key = nil, b.config.Envelope.Output.Key
		}
		_, doc, err := b.run()
		if err != nil {
			t.Fatalf("got error %v, want nil\n%s", err, b.logged.bytes())
		}
		if !credentials {
			stored, _ := p.Object(key)
			doc = string(stored)
		}
		if !strings.Contains(doc, "<title>one</title>") || b.calls.count() != 0 {
			t.Errorf("got %d callbacks, want 0, and a document, want the title one in it:\n%s", b.calls.count(), doc)
		}
		end := last(t, p, "completed")
		want := map[string]any{"outputPath": key, "fileName": testPI(0) + "-collection.xml", "byteSize": float64(len(doc)), "digest": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(doc)))}
		if diff := cmp.Diff(want, end["output"]); diff != "" || end["outcome"] != "SUCCEEDED" {
			t.Error(end["outcome"], diff)
		}
		metrics, _ := end["metrics"].(map[string]any)
		if metrics["entitiesExported"] != 2.0 || metrics["peakMemoryMb"] != 30.0 || metrics["cpuTimeMs"] == nil {
			t.Errorf("got metrics %v, want 2 entities, 30 MB and the CPU time", metrics)
		}
		for name := range metrics {
			if strings.Contains(name, "_") {
				t.Errorf("got metric %s in completed, want camelCase", name)
			}
		}
		if m := last(t, p, "heartbeat")["message"]; m == nil {
			t.Error("got no message in the last heartbeat, want one")
		}
	}
}

func TestFailedExportHasACategory(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, category string
		retryable      bool
		fail           func(b *bench)
	}{
		{"absent", "DATA_QUALITY", false, func(b *bench) { clear(b.archive.entities) }},
		{"no bucket", "INFRASTRUCTURE", true, func(b *bench) { b.bucket.fail = errors.New("down") }},
		{"no disk", "INFRASTRUCTURE", true, func(b *bench) { b.ports.TempDir += "/gone" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "mods", DefaultOptions())
			b.archive.add(0, pinax("x"))
			p := withEnvelope(t, b, nil)
			row.fail(b)
			err := Run(t.Context(), b.config, b.ports)
			e, _ := last(t, p, "completed")["error"].(map[string]any)
			if err == nil || e["category"] != row.category || e["retryable"] != row.retryable || e["message"] != err.Error() {
				t.Errorf("got %v, reported %v, want %s, retryable %t", err, e, row.category, row.retryable)
			}
		})
	}
}

func TestCancelledExportReportsPartialProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", recursive())
	b.archive.add(0, pinax("root"), 1)
	b.archive.answers["/entities/"+testPI(1)] = func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }
	p := withEnvelope(t, b, func(c *conformance.Call, _ int) *conformance.Answer {
		if c.Endpoint != "heartbeat" || c.Fields["progressPct"] == nil {
			return nil
		}
		return &conformance.Answer{Status: http.StatusOK, Body: map[string]any{"shouldCancel": true}}
	})
	_, doc, err := b.run()
	end := last(t, p, "completed")
	if !errors.Is(err, context.Canceled) || doc != "" || end["outcome"] != "CANCELLED" || end["cancelledDuringPhase"] != "reading" {
		t.Errorf("got %v, completed %v, want CANCELLED with the progress", err, end)
	}
	if diff := cmp.Diff(map[string]any{"entitiesExported": 1.0}, end["partialProgress"]); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidEnvironmentIsReportedByEnvelope(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	p := withEnvelope(t, b, nil)
	variable, err := p.Variable()
	if err != nil {
		t.Fatal(err)
	}
	code := MainWith(t.Context(), []string{variable}, b.logged, nil)
	e, _ := last(t, p, "completed")["error"].(map[string]any)
	if code != 1 || e["category"] != "CONFIGURATION" || !strings.Contains(e["message"].(string), "missing PI\nmissing SOURCE_API_URL") { //nolint:forcetypeassert // a test
		t.Errorf("got code %d, error %v, want 1, CONFIGURATION with both variables", code, e)
	}
}

func TestRefusedStartPreventsTheExport(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	withEnvelope(t, b, func(*conformance.Call, int) *conformance.Answer {
		return &conformance.Answer{Status: http.StatusConflict, Body: map[string]any{"error": "task_already_terminal", "state": "CANCELLED"}}
	})
	if _, doc, err := b.run(); !errors.Is(err, sdk.ErrCancelled) || doc != "" {
		t.Errorf("got %v, want ErrCancelled and no request", err)
	}
}
