package webhooks_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const replayPath = "/v1/events:replay"

// TestReplayIsAcceptedOnce replays the three events of a stream to a webhook.
func TestReplayIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	path, _ := s.create(t, "")
	id := strings.TrimPrefix(path, "/v1/webhooks/")
	s.publish(t, id)
	s.publish(t, id)
	body := fmt.Sprintf(`{"from": "earliest", "target": {"webhookId": %q}, "limit": 2}`, id)
	first, _ := call[contract.Replay](t, s, "POST", replayPath, body, 202, "Idempotency-Key", "k")
	if first.Events != 2 || first.Sent != 0 || first.Target.WebhookID != id || !strings.HasSuffix(first.From, "-0") || !strings.HasSuffix(first.To, "-2") || first.Next != first.To {
		t.Fatalf("got %+v, want two events and the rest", first)
	}
	if err := s.webhooks.Delivery.Deliver(t.Context(), webhook.Ref{Tenant: apitest.Tenant, ID: id}); err != nil {
		t.Fatal(err)
	}
	again, _ := call[contract.Replay](t, s, "POST", replayPath, body, 200, "Idempotency-Key", "k")
	if again.ID != first.ID || again.Sent != 2 {
		t.Errorf("got %+v, want the same replay with two sent events", again)
	}
	call[contract.Problem](t, s, "POST", replayPath, `{"from": "earliest", "target": {"bus": true}}`, 422, "Idempotency-Key", "k")
	rest, _ := call[contract.Replay](t, s, "POST", replayPath, fmt.Sprintf(`{"from": %q, "target": {"bus": true}}`, first.Next), 202)
	if rest.Events != 1 || rest.Next != "" || !rest.Target.Bus || rest.ID == first.ID {
		t.Errorf("got %+v, want the last event to the bus", rest)
	}
	hour := fmt.Sprintf(`{"from": %q, "to": %q, "target": {"bus": true}}`, apitest.Began.Format(time.RFC3339), apitest.Began.Add(time.Hour).Format(time.RFC3339))
	if timed, _ := call[contract.Replay](t, s, "POST", replayPath, hour, 202); timed.Events != 3 {
		t.Errorf("got %+v of the hour, want all three events", timed)
	}
}

func TestReplayNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const bus = `, "target": {"bus": true}}`
	for body, want := range map[string]string{
		`{"target": {"bus": true}}`:                                "from",
		`{"from": "", "target": {"bus": true}}`:                    "from",
		`{"from": "yesterday"` + bus:                               "from",
		`{"from": "latest"` + bus:                                  "from",
		`{"from": "2026-13-01T00:00:00Z"` + bus:                    "from",
		`{"from": "0001-01-01T00:00:00Z"` + bus:                    "from",
		`{"from": "zz-1"` + bus:                                    "from",
		`{"from": "0", "to": "earliest"` + bus:                     "to",
		`{"from": "0", "to": "0"` + bus:                            "to",
		`{"from": "0", "limit": 0` + bus:                           "limit",
		`{"from": "0", "limit": 10001` + bus:                       "limit",
		`{"from": "0", "filter": {"types": ["x"]}` + bus:           "filter.types",
		`{"from": "0", "filter": {"state": "x"}` + bus:             "filter.state",
		`{"from": "0"}`:                                            "target",
		`{"from": "0", "target": {}}`:                              "target",
		`{"from": "0", "target": {"bus": false}}`:                  "target",
		`{"from": "0", "target": {"bus": true, "webhookId": "w"}}`: "target",
		`{"from": "0", "later": 1` + bus:                           "later",
	} {
		p, _ := call[contract.Problem](t, s, "POST", replayPath, body, 400)
		if p.Field != want {
			t.Errorf("%s: got %+v, want a problem of %s", body, p, want)
		}
	}
	call[contract.Problem](t, s, "POST", replayPath, `{"from": "0", "target": {"webhookId": "whk_1"}}`, 404)
	call[contract.Problem](t, s, "POST", replayPath, `{"from": "0", "filter": {"types": ["job.failed"]}`+bus, 422)
}

// TestReplayNeedsItsScope uses a token with one scope at a time.
func TestReplayNeedsItsScope(t *testing.T) {
	t.Parallel()
	for _, scope := range access.Scopes() {
		want := 403
		if scope == access.Backfill {
			want = 202
		}
		s := setup(t, func(c *apitest.Settings) { c.Server.Local.Scopes = []access.Scope{scope} })
		call[any](t, s, "POST", replayPath, `{"from": "0", "target": {"bus": true}}`, want)
	}
}
