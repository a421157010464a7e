package tasks_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestPinThatComesTooLate pins a run at times around the expiry of its output. Each refusal leaves
// the run as it is.
func TestPinThatComesTooLate(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for _, before := range []struct {
		left   time.Duration
		status int
	}{{2*time.Minute + second, 200}, {2*time.Minute - second, 410}, {second, 410}, {-time.Hour, 410}} {
		stage := setup(t)
		path := "/v1/runs/" + stage.Success(t, "out.xml", "application/xml", "<out/>")
		output := get[contract.Task](t, stage, path).Output
		stage.Clock.Advance(output.ExpiresAt.Sub(stage.Clock.Now()) - before.left)
		answer := stage.Call(t, http.MethodPost, path+"/pin", "")
		if answer.Status != before.status {
			t.Fatalf("%s before the expiry: got %d %s, want %d", before.left, answer.Status, answer.Body, before.status)
		}
		after := get[contract.Task](t, stage, path)
		if refused := before.status == 410; (after.Pin == nil) != refused || after.Output.ExpiresAt.Equal(output.ExpiresAt) != refused {
			t.Errorf("%s before the expiry: got the pin %v and the expiry %s", before.left, after.Pin, after.Output.ExpiresAt)
		}
		if before.status == 410 {
			if p := post[contract.Problem](t, stage, path+"/pin", "", 410); p.Code != "OUTPUT_EXPIRED" || p.Retryable {
				t.Errorf("%s before the expiry: got %+v, want OUTPUT_EXPIRED without a retry", before.left, p)
			}
			post[contract.Task](t, stage, path+"/unpin", "", 200)
		}
	}
}

// TestPinAfterTheDeletion pins a run whose output was deleted. The pin keeps its record.
func TestPinAfterTheDeletion(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	path := "/v1/runs/" + stage.Success(t, "out.xml", "application/xml", "<out/>")
	stage.Clock.Advance(get[contract.Task](t, stage, path).Output.ExpiresAt.Sub(stage.Clock.Now()) + time.Minute)
	if err := stage.System.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if after := post[contract.Task](t, stage, path+"/pin", "", 200); after.Pin == nil || !after.ExpiresAt.IsZero() || after.Output.DeletedAt.IsZero() {
		t.Errorf("got %+v, want a pinned run without its output", after)
	}
}
