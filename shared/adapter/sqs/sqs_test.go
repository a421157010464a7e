package sqs_test

import (
	"crypto/md5" //nolint:gosec // as the API does
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/sqs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

const queue = "https://sqs.eu-central-1.amazonaws.com/123456789012/deliveries"

// request is a request that the queue receives.
type request struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []struct {
		ID           string `json:"Id"`
		MessageBody  string
		DelaySeconds int
	}
}

// open returns a queue whose responses come from serve: the ids that it accepts and whether the
// fault is the sender's.
func open(t *testing.T, serve func(r request) (accepted []string, senderFault bool, err error)) *sqs.Wakes {
	t.Helper()
	cfg := awstest.Serve(t, map[string]awstest.Call{"SendMessageBatch": func(body json.RawMessage) (any, error) {
		var r request
		if err := json.Unmarshal(body, &r); err != nil {
			t.Error(err)
		}
		if r.QueueURL != queue || len(r.Entries) == 0 || len(r.Entries) > 10 {
			t.Errorf("got %d messages to %s, want 1 to 10 to %s", len(r.Entries), r.QueueURL, queue)
		}
		accepted, senderFault, err := serve(r)
		var successful, failed []map[string]any
		for _, e := range r.Entries {
			if slices.Contains(accepted, e.ID) {
				successful = append(successful, map[string]any{"Id": e.ID, "MessageId": "m" + e.ID, "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(e.MessageBody)))}) //nolint:gosec // as the API does
			} else {
				failed = append(failed, map[string]any{"Id": e.ID, "Code": "InternalError", "SenderFault": senderFault})
			}
		}
		return map[string]any{"Successful": successful, "Failed": failed}, err
	}})
	w, err := sqs.New(cfg, queue)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWakesAreSentInBatches(t *testing.T) {
	t.Parallel()
	var got []string
	w := open(t, func(r request) (accepted []string, _ bool, _ error) {
		for _, e := range r.Entries {
			got, accepted = append(got, fmt.Sprintf("%s after %d", e.MessageBody, e.DelaySeconds)), append(accepted, e.ID)
		}
		return accepted, false, nil
	})
	var wakes []port.Wake
	var want []string
	for i, delay := range map[int]time.Duration{0: 0, 1: time.Millisecond, 2: time.Second, 3: 1001 * time.Millisecond, 900: time.Hour, -1: -time.Second} {
		id := fmt.Sprintf("whk_%d", i)
		seconds := map[int]int{0: 0, 1: 1, 2: 1, 3: 2, 900: 900, -1: 0}[i]
		wakes = append(wakes, port.Wake{Tenant: "acme", Webhook: id, Delay: delay})
		want = append(want, fmt.Sprintf(`{"tenant":"acme","webhook":%q} after %d`, id, seconds))
	}
	for i := range 20 {
		wakes = append(wakes, port.Wake{Tenant: "acme", Webhook: fmt.Sprintf("whk_more%d", i)})
		want = append(want, fmt.Sprintf(`{"tenant":"acme","webhook":"whk_more%d"} after 0`, i))
	}
	if err := w.Wake(t.Context(), wakes...); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if err := w.Wake(t.Context()); err != nil || len(got) != len(want) {
		t.Errorf("got %v and %d messages without a wake, want no request", err, len(got))
	}
}

// TestRefusedMessagesAreSentAgain checks that after a queue accepts a part of a request, only
// the rest is sent again.
func TestRefusedMessagesAreSentAgain(t *testing.T) {
	t.Parallel()
	var got []string
	w := open(t, func(r request) (accepted []string, _ bool, _ error) {
		for i, e := range r.Entries {
			if i%2 == 0 {
				got, accepted = append(got, e.MessageBody), append(accepted, e.ID)
			}
		}
		return accepted, false, nil
	})
	if err := w.Wake(t.Context(), port.Wake{Webhook: "a"}, port.Wake{Webhook: "b"}, port.Wake{Webhook: "c"}); err != nil {
		t.Error(err)
	}
	slices.Sort(got)
	if text := strings.Join(got, ""); len(got) != 3 || strings.Count(text, `"a"`) != 1 || strings.Count(text, `"b"`) != 1 || strings.Count(text, `"c"`) != 1 {
		t.Errorf("got %v, want each message once", got)
	}
}

func TestUnavailableQueue(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		senderFault bool
		err         error
		calls       int
	}{
		"accepts nothing":    {calls: 4},
		"refuses a message":  {senderFault: true, calls: 1},
		"refuses the sender": {err: awstest.Refusal{Code: "AccessDenied", Status: http.StatusForbidden}, calls: 1},
		"fails":              {err: awstest.Refusal{Code: "InternalError", Status: http.StatusInternalServerError}, calls: 4},
	} {
		calls := 0
		w := open(t, func(request) ([]string, bool, error) {
			calls++
			return nil, row.senderFault, row.err
		})
		if err := w.Wake(t.Context(), port.Wake{Webhook: "a"}); !fault.Is(err, fault.Unavailable) || calls != row.calls {
			t.Errorf("%s: got %v after %d calls, want Unavailable after %d", name, err, calls, row.calls)
		}
	}
	if _, err := sqs.New(awstest.Serve(t, nil), ""); err == nil {
		t.Error("got a queue without a URL, want an error")
	}
}
