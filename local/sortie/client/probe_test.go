package client_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// hung is a server that accepts requests and answers none until it continues.
type hung struct {
	continues chan struct{}
	handler   http.Handler
	calls     []string
}

func (h *hung) RoundTrip(req *http.Request) (*http.Response, error) {
	h.calls = append(h.calls, req.Method)
	select {
	case <-h.continues:
		return inMemory{h.handler}.RoundTrip(req)
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// TestHungServerIsReported waits for a server that answers after five seconds.
func TestHungServerIsReported(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		url      string
		retries  bool
		reported bool
	}{
		"a server of this machine":    {"http://127.0.0.1:1", true, true},
		"localhost":                   {"http://localhost:1", true, true},
		"a call without retries":      {"http://[::1]:1", false, true},
		"a server of another machine": {"http://sortie.test", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin, continues := time.Now(), 5*time.Second
				network := &hung{continues: make(chan struct{}), handler: &life{start: begin, states: []string{"Completed"}, from: []time.Duration{0}}}
				time.AfterFunc(continues, func() { close(network.continues) })
				var reports, contacts []time.Duration
				report := func(error) { reports = append(reports, at(begin)) }
				c, err := client.New(client.Config{URL: row.url, Transport: network, Clock: clock.System{}, OnSilence: report})
				if err != nil {
					t.Fatal(err)
				}
				if row.retries {
					c = c.WithRetry(time.Minute, report)
				}
				status, err := c.WithContact(func() { contacts = append(contacts, at(begin)) }).Status(t.Context(), taskID, 10*time.Second)
				if err != nil || status.Status != "success" || at(begin) != continues {
					t.Errorf("got %q and error %v after %v, want the answer to the first call", status.Status, err, at(begin))
				}
				if row.reported != (len(reports) == 1) || row.reported && reports[0] > 2*time.Second {
					t.Errorf("got reports after %v, want one within 2 s: %t", reports, row.reported)
				}
				if len(contacts) == 0 {
					t.Error("got no contact")
				}
				if slices.Contains(network.calls, http.MethodHead) != row.reported {
					t.Errorf("got the calls %v, want probes: %t", network.calls, row.reported)
				}
			})
		})
	}
}
