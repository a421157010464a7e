package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/relay"
)

// hooks records the tenants whose webhooks are queued.
type hooks struct {
	tenants []string
	sweeps  int
	// fails means that the queue is not reachable.
	fails bool
}

func (h *hooks) DispatchTenants(_ context.Context, tenants []string) int {
	h.tenants = append(h.tenants, tenants...)
	if h.fails {
		return len(tenants)
	}
	return 0
}

func (h *hooks) Sweep(context.Context) error {
	h.sweeps++
	if h.fails {
		return errors.New("the queue does not respond")
	}
	return nil
}

// TestNewEventsWakeWebhooks checks that the webhooks of new events are enqueued at once. If
// that fails, the table's stream does not deliver the records again; a sweep enqueues the
// webhooks.
func TestNewEventsWakeWebhooks(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for i, fails := range []bool{false, true} {
		s.hooks = hooks{fails: fails}
		answer := s.relay(image(fmt.Sprintf("r%d", i), fmt.Sprintf("a%d", i)))
		if len(s.hooks.tenants) != 1 || answer != `{"batchItemFailures":[]}` || s.counts["DispatchFailures"] != i {
			t.Errorf("fails %t: got the tenants %v, %s, counts %v, want one tenant and no failed record", fails, s.hooks.tenants, answer, s.counts)
		}
	}
	s.hooks = hooks{fails: true}
	_, err := s.handle(s.Context(), json.RawMessage(`{"detail-type":"Scheduled Event"}`))
	if err == nil || !strings.Contains(err.Error(), "the queue does not respond") || s.hooks.sweeps != 1 {
		t.Errorf("got %v after %d sweeps, want the error of one", err, s.hooks.sweeps)
	}
}

// TestNewEventsWakeAllThatWait checks that connections of readers are enqueued like webhooks. A
// failure of one queue does not delay the other.
func TestNewEventsWakeAllThatWait(t *testing.T) {
	t.Parallel()
	webhooks, sockets := &hooks{fails: true}, &hooks{}
	all := relay.Dispatchers{webhooks, sockets}
	if failed := all.DispatchTenants(t.Context(), []string{"a", "b"}); failed != 2 || len(webhooks.tenants) != 2 || len(sockets.tenants) != 2 {
		t.Errorf("got %d failures for %v and %v, want both called", failed, webhooks.tenants, sockets.tenants)
	}
	if err := all.Sweep(t.Context()); err == nil || webhooks.sweeps != 1 || sockets.sweeps != 1 {
		t.Errorf("got %v after %d and %d sweeps, want the error and both", err, webhooks.sweeps, sockets.sweeps)
	}
}
