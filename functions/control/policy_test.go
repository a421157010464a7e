package control_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestChangesOfAPoolAreEvents checks that the digests of the events form a chain from the
// creation of the pool to its deletion.
func TestChangesOfAPoolAreEvents(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 4}`, 201)
	apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 4}`, 200) // changes nothing
	apitest.Decoded[contract.Pool](t, stage, "POST", path+"/drain", "", 202)
	apitest.Decoded[any](t, stage, "DELETE", path, "", 204)
	stage.Clock.Advance(time.Second)
	apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 4}`, 201)
	got := stage.Notes(t)
	if len(got) != 4 {
		t.Fatalf("got %d events, want 4", len(got))
	}
	last, keys := "", map[string]bool{}
	for i, e := range got {
		if p := e.Policy; p.Resource != "pool" || p.ID != "reports" || p.Before != last || (p.After == "") != (i == 2) || p.Before == p.After {
			t.Errorf("got event %d with %+v, want a change of the pool from %q", i, p, last)
		}
		if last = e.Policy.After; keys[e.IdempotencyKey] {
			t.Errorf("got key %s twice", e.IdempotencyKey)
		}
		keys[e.IdempotencyKey] = true
	}
}
