package export_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TestFullQueueIsTooManyRequests fills the pool of two machines and its queue.
func TestFullQueueIsTooManyRequests(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t),
		func(s *app.System) []httpkit.Route {
			return export.Routes(s.Requests, delivery.NoWebhooks{})
		},
		func(s *apitest.Settings) { s.Service.QueueLimit = 3 })
	const room = 5
	for i := range room {
		answer := stage.Call(t, http.MethodPost, "/export/mods", body, "Idempotency-Key", fmt.Sprint("order ", i))
		if answer.Status != http.StatusAccepted {
			t.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
		}
		stage.Admit(t, accepted(t, answer).TaskID)
		stage.Clock.Advance(2 * time.Second)
	}
	answer := stage.Call(t, http.MethodPost, "/export/mods", body)
	p := problem(t, answer)
	if answer.Status != http.StatusTooManyRequests || p.Code != "ADMISSION_REJECT" || p.PolicyLabel != "reject" || p.Retriable == nil || !*p.Retriable || p.RetryAfterMS != 1000 {
		t.Errorf("got %d %s, want 429 ADMISSION_REJECT", answer.Status, answer.Body)
	}
	if answer.Header.Get("Retry-After") != "1" || answer.Header.Get("X-Backoff-Ms") != "1000" {
		t.Errorf("got headers %v, want Retry-After 1 and X-Backoff-Ms 1000", answer.Header)
	}
	for _, row := range []struct {
		name, body, key string
		status          int
	}{
		{"known key", body, "order 1", http.StatusOK},
		{"known key of another request", `{"pi":"` + apitest.PI + `"}`, "order 1", http.StatusUnprocessableEntity},
		{"new key", body, "order 9", http.StatusTooManyRequests},
	} {
		if answer := stage.Call(t, http.MethodPost, "/export/mods", row.body, "Idempotency-Key", row.key); answer.Status != row.status {
			t.Errorf("%s: got %d %s, want %d", row.name, answer.Status, answer.Body, row.status)
		}
	}
	if got := count(t, stage); got != room {
		t.Errorf("got %d stored runs, want %d", got, room)
	}
}
