package delivery_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/events"
)

// TestLeaseIsStoredBeforeTheAttempts lets a second worker call Deliver while a request of the
// first one is open. The second worker sends nothing. The first one delivers the events that
// came meanwhile.
func TestLeaseIsStoredBeforeTheAttempts(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	w := h.subscribe()
	var open atomic.Bool // not a sync.Once: a second request must not wait for the first
	h.receiver.answer = func(http.ResponseWriter, *http.Request, events.Envelope) {
		if open.Swap(true) {
			return
		}
		p, err := h.store.Progress(h.Context(), w.Ref())
		if err != nil || p.Lease.Owner != "worker" {
			t.Errorf("got lease %+v, %v during an attempt, want that of worker", p.Lease, err)
		}
		h.append("later")
		if err := h.worker("second").Deliver(h.Context(), w.Ref()); err != nil {
			t.Error(err)
		}
		h.receiver.mu.Lock()
		defer h.receiver.mu.Unlock()
		if len(h.receiver.got) != 1 {
			t.Errorf("got %d requests during the lease, want 1", len(h.receiver.got))
		}
	}
	h.publish("first")
	h.work()
	if got := h.receiver.tasks(); len(got) != 2 || got[0] != "first" || got[1] != "later" {
		t.Errorf("got events of %v, want one of first and one of later", got)
	}
}
