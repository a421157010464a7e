package callback_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestTokenIsRenewedAtHalfItsLife also checks that the previous token is valid
// until it expires.
func TestTokenIsRenewedAtHalfItsLife(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	envelope := h.stage.Envelope(t, h.task)
	life := envelope.TokenExpiresAt.Sub(apitest.Began)
	if want := envelope.Deadline.Add(30 * time.Second).Sub(apitest.Began); life != want {
		t.Errorf("got a token lifetime of %s, want %s until the end of the grace after the deadline", life, want)
	}
	wantOK(t, h.call(t, "started", h.body(1, "")), acked)
	h.stage.Clock.Advance(life / 2)
	wantOK(t, h.call(t, "heartbeat", h.body(1, "")), heartbeatAck)
	h.stage.Clock.Advance(2 * time.Second)
	var answer contract.HeartbeatAnswer
	if err := json.Unmarshal([]byte(h.call(t, "heartbeat", h.body(1, "")).Body), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.TaskToken == "" || answer.TaskToken == h.token || answer.Output == nil || answer.Output.Key != envelope.Output.Key ||
		answer.TokenExpiresAt.Sub(h.stage.Clock.Now()) != life {
		t.Fatalf("got a renewal for %s: %+v, want a new token for %s and new URLs", answer.TokenExpiresAt, answer.Output, life)
	}
	renewed := h
	renewed.token = answer.TaskToken
	wantOK(t, renewed.call(t, "heartbeat", h.body(1, "")), heartbeatAck)
	// The previous token is still valid after the renewal.
	if answer := h.call(t, "heartbeat", h.body(1, "")); answer.Status != http.StatusOK {
		t.Errorf("got %d for the previous token, want 200", answer.Status)
	}
	h.stage.Clock.Advance(life/2 - 2*time.Second)
	wantProblem(t, h.call(t, "heartbeat", h.body(1, "")), http.StatusUnauthorized, "")
	wantOK(t, renewed.call(t, "heartbeat", h.body(1, "")), heartbeatAck)
	if strings.Contains(h.stage.Logs(), answer.TaskToken) || strings.Contains(h.stage.Logs(), h.token) || strings.Contains(h.stage.Logs(), answer.Output.URL) {
		t.Error("got a token or a presigned URL in the log, want both masked")
	}
}

// TestEnvelopeMatchesSchema checks that the schema TaskEnvelope accepts the
// envelope of a launch and refuses one without its token.
func TestEnvelopeMatchesSchema(t *testing.T) {
	t.Parallel()
	document, err := apicheck.Load(contract.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	h := startTask(t)
	e := h.stage.Envelope(t, h.task)
	for want, token := range map[bool]string{true: e.TaskToken, false: ""} {
		e.TaskToken = token
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := document.CheckSchema("TaskEnvelope", text); (err == nil) != want {
			t.Errorf("with the token %q: got %v, want a match: %t", token, err, want)
		}
	}
}

// TestSchemaDescribesEveryMember compares the schema's properties with the
// members of an envelope.
func TestSchemaDescribesEveryMember(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := yaml.Unmarshal(contract.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	h := startTask(t)
	envelope := h.stage.Envelope(t, h.task)
	envelope.Program = &contract.EnvelopeProgram{} // an export has none of these
	envelope.ScheduledAt, envelope.Inputs = envelope.EnqueuedAt, map[string]json.RawMessage{"a": json.RawMessage("1")}
	text, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(members))
	want := slices.Sorted(maps.Keys(document.Components.Schemas["TaskEnvelope"].Properties))
	if !slices.Equal(got, want) {
		t.Errorf("got the members %q, want the properties %q", got, want)
	}
}

// TestEnvelopeHasWhatTheWorkerNeeds also checks that the export contract's variables are still
// set.
func TestEnvelopeHasWhatTheWorkerNeeds(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	e := h.stage.Envelope(t, h.task)
	r := h.stage.Run(t, h.task)
	if e.TaskID != h.task || e.RunID != r.ID || e.TenantID != apitest.Tenant || e.WorkspaceID != "main" || e.Attempt != 1 ||
		e.AssetID != apitest.PI || e.TaskKey != "export/mods" || e.CorrelationID != "of-the-test" ||
		e.HeartbeatIntervalMS != 30_000 || e.HeartbeatTimeoutMS != 90_000 || e.CancelGracePeriodMS != 30_000 ||
		e.CallbackBaseURL != "http://localhost" || !e.Deadline.Equal(r.Deadline()) || e.Resources.CPUMillicores != 1000 ||
		e.Resources.MemoryBytes != 256<<20 || e.Log == nil || e.Output.Key == e.Log.Key || !strings.HasPrefix(e.Output.Key, "exports/"+h.task+"/") {
		t.Errorf("got envelope %+v, want the run's fields, an output and a log below the task's prefix", e)
	}
}
