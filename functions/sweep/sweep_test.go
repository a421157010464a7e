package sweep_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/sweep"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

func TestSweepDeletesExpiredOutputs(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(*app.System) []httpkit.Route { return nil })
	stage.Success(t, "a.xml", "application/xml", "<a/>")
	handler := sweep.Handler(stage.System.Sweeper, sweep.NoSensors{})
	if _, err := handler(t.Context(), json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if n := stage.Objects.Count(port.Accepted); n != 1 {
		t.Errorf("got %d outputs before they expire, want 1", n)
	}
	stage.Clock.Advance(25 * time.Hour)
	output, err := handler(t.Context(), json.RawMessage(`{"earlySeconds":30}`))
	if err != nil || string(output) != `{}` {
		t.Fatalf("got output %s, %v, want {}", output, err)
	}
	if n := stage.Objects.Count(port.Accepted); n != 0 {
		t.Errorf("got %d outputs a day later, want 0", n)
	}
	_, err = handler(t.Context(), json.RawMessage(`{"earlySeconds":-1}`))
	if name := lambdakit.ErrorName(err); name != "InvalidInput" {
		t.Errorf("got %v for negative earlySeconds, want InvalidInput", err)
	}
}

// TestSweepEvents checks that a schedule starts a sweep, an ended execution a
// check of its run, and that other events are rejected.
func TestSweepEvents(t *testing.T) {
	t.Parallel()
	change := func(detail string) string {
		return `{"version":"0","id":"i","detail-type":"Step Functions Execution Status Change","source":"aws.states","account":"123456789012",
			"time":"2026-11-21T09:00:00Z","region":"eu-central-1","resources":["arn:aws:states:eu-central-1:123456789012:execution:m:x"],"detail":` + detail + `}`
	}
	const input = `"input":"{\"tenant\":\"default\",\"runId\":\"r\"}","inputDetails":{"included":true},"output":null`
	for _, row := range []struct{ name, event, failure string }{
		{"a schedule", `{"version":"0","id":"i","detail-type":"Scheduled Event","source":"aws.events","resources":["arn:aws:events:r:a:rule/x"],"detail":{}}`, ""},
		{"an execution that ended", change(`{"name":"x","status":"FAILED",` + input + `}`), ""},
		{"an execution that started", change(`{"name":"x","status":"RUNNING",` + input + `}`), ""},
		{"an execution without input", change(`{"name":"x","status":"FAILED","inputDetails":{"included":false}}`), "InvalidInput"},
		{"an execution with another input", change(`{"name":"x","status":"FAILED","input":"{}"}`), "InvalidInput"},
		{"an execution without a name", change(`{"status":"FAILED",` + input + `}`), "InvalidInput"},
		{"another event", `{"detail-type":"EC2 Instance State-change Notification","detail":{"state":"stopped"}}`, "InvalidInput"},
		{"a wrong type", change(`[]`), "InvalidInput"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stage := apitest.New(t, apitest.NewParts(t), func(*app.System) []httpkit.Route { return nil })
			_, err := sweep.Handler(stage.System.Sweeper, sweep.NoSensors{})(t.Context(), json.RawMessage(row.event))
			if name := lambdakit.ErrorName(err); name != row.failure {
				t.Errorf("got error %q: %v, want %q", name, err, row.failure)
			}
		})
	}
}

func FuzzSweepInput(f *testing.F) {
	f.Add(`{}`)
	f.Add(`{"detail-type":"Step Functions Execution Status Change","detail":{"name":"x","status":"RUNNING","input":"{\"tenant\":\"a\",\"runId\":\"r\"}"}}`)
	f.Add(`{"detail-type":"Step Functions Execution Status Change","detail":{"name":"x","status":"FAILED","input":"\""}}`)
	f.Fuzz(func(t *testing.T, input string) {
		_, err := sweep.Handler(nil, sweep.NoSensors{})(t.Context(), json.RawMessage(input))
		// The use cases are called and panic, because there is no service.
		if name := lambdakit.ErrorName(err); err != nil && name != "InvalidInput" && name != "Panicked" {
			t.Errorf("%s: got %v, want InvalidInput, Panicked or nil", input, err)
		}
	})
}
