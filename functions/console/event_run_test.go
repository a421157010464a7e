package console_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestRunShowsItsEvent opens the page of a run that a hostile event started, and that of its job.
func TestRunShowsItsEvent(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "order", `{"image": "a", "sensor": {"cloudEvent": {}}}`)
	answer := h.Call(t, http.MethodPost, "/v1/jobs/order/events", `{"specversion": "1.0", "id": "<script>x", "source": "/shop", "type": "order.paid", "subject": "\"><b>"}`,
		append(slices.Clip(bearer), "Content-Type", "application/cloudevents+json")...)
	var receipts contract.EventReceipts
	if err := json.Unmarshal([]byte(answer.Body), &receipts); err != nil || answer.Status != http.StatusAccepted || len(receipts.Events) != 1 {
		t.Fatalf("got %d %s, want a run", answer.Status, answer.Body)
	}
	b := h.signedIn(t, ownerToken)
	b.page("/console/jobs/order", "on events")
	if text := b.page("/console/runs/"+receipts.Events[0].RunID, "&lt;script&gt;x", "/shop", "order.paid", "Event subject"); strings.Contains(text, "<script>x") {
		t.Error("got markup of the event in the page")
	}
}
