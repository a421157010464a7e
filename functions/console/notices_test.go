package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/redelivery"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestRedeliver shows a failed notification, and sends it again.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.Failure(t, "broken")
	r := h.Run(t, id)
	r.FailedActions = []redelivery.Failed{{Action: "onFailure-2", Type: spec.ActionNotify, Answer: "answered 404 <b>", At: r.EndedAt}}
	d, err := run.Decide(r, run.PinChanged{Pinned: true}, r.EndedAt.Add(time.Second))
	if err == nil {
		err = h.Store.Commit(t.Context(), port.WriteOf(d))
	}
	if err != nil {
		t.Fatal(err)
	}
	b := h.signedIn(t, ownerToken)
	path := "/console/runs/" + id
	b.page(path, "Failed notifications", "onFailure-2", "answered 404 &lt;b&gt;", "Send again")
	for name, token := range map[string]string{"another tenant": otherToken, "without runs:write": readerToken} {
		stranger := h.signedIn(t, token)
		stranger.get("/console/runs")
		if answer := stranger.post(path+"/redeliver", "action", "onFailure-2"); answer.Status != http.StatusForbidden && answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d %s, want a refusal", name, answer.Status, answer.Body)
		}
	}
	if answer := b.post(path+"/redeliver", "action", "onSuccess"); answer.Status != http.StatusBadRequest || h.Run(t, id).Sends("onFailure-2") {
		t.Errorf("got %d %s for an action that has not failed, want 400", answer.Status, answer.Body)
	}
	for range 2 {
		if answer := b.post(path+"/redeliver", "action", "onFailure-2"); answer.Status != http.StatusSeeOther || !strings.HasSuffix(answer.Header.Get("Location"), "?done=notified") {
			t.Errorf("got %d to %s, want the run", answer.Status, answer.Header.Get("Location"))
		}
	}
	if pending := h.Run(t, id).Execution.Pending; len(pending) != 1 || pending[0].Action != "onFailure-2" {
		t.Errorf("got pending %+v, want the notification once", pending)
	}
	b.page(path, "It is being sent again.")
}
