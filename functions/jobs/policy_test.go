package jobs_test

import (
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// TestChangesOfAJobAreEvents checks that each change is one event with its actor and the
// digests of the job before and after the change, as returned by GET.
func TestChangesOfAJobAreEvents(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	shown := func() string {
		t.Helper()
		digest, err := events.Digest([]byte(stage.Call(t, http.MethodGet, path, "").Body))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 201)
	digests := []string{"", shown()}
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 200) // changes nothing
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "other"}`, 200)
	digests = append(digests, shown())
	apitest.Decoded[api.JobAnswer](t, stage, "POST", path+"/pause", "", 200)
	digests = append(digests, shown(), "")
	apitest.Decoded[any](t, stage, "DELETE", path, "", 204)
	got := stage.Notes(t)
	if len(got) != len(digests)-1 {
		t.Fatalf("got %d events, want %d", len(got), len(digests)-1)
	}
	keys := map[string]bool{}
	for i, e := range got {
		if p := e.Policy; e.EventType != "policy.updated" || p.Resource != "job" || p.ID != "nightly" || p.Before != digests[i] || p.After != digests[i+1] {
			t.Errorf("got event %d of type %s with %+v, want the change from %q to %q", i, e.EventType, e.Policy, digests[i], digests[i+1])
		}
		if e.Actor.Subject != "localhost" || len(e.Actor.Scopes) == 0 || e.ProjectID != "main" || e.Job != nil {
			t.Errorf("got event %+v, want the client and its project", e)
		}
		if keys[e.IdempotencyKey] || keys[e.EventID] {
			t.Errorf("got key %s twice, want one for each change", e.IdempotencyKey)
		}
		keys[e.IdempotencyKey], keys[e.EventID] = true, true
	}
}
