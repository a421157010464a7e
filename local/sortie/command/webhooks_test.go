package command_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestWebhooksFromTheCommandLine(t *testing.T) {
	t.Parallel()
	status := http.StatusNoContent
	var verified []error
	secret := ""
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if library, err := standardwebhooks.NewWebhook(secret); err == nil {
			verified = append(verified, library.VerifyIgnoringTimestamp(body, r.Header))
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	parts := apitest.NewParts(t)
	hooks := apitest.NewWebhooks(t, parts)
	stage := apitest.New(t, parts, func(*app.System) []httpkit.Route { return webhooks.Routes(hooks.Webhooks) })
	env := map[string]string{"SORTIE_URL": stage.URL}
	created := sortie(t, env, "", "webhooks", "create", receiver.URL, "--type", "job.*,policy.updated", "--description", "for a test")
	lines := strings.Fields(created.stdout)
	if created.code != 0 || len(lines) != 2 || !strings.HasPrefix(lines[1], "whsec_") {
		t.Fatalf("got exit code %d with %s%s, want the id and the secret", created.code, created.stdout, created.stderr)
	}
	id := lines[0]
	secret = lines[1]
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"list", 0, id + "  active  job.*,policy.updated  " + receiver.URL},
		{"show " + id, 0, id + ": active\n"},
		{"test " + id, 0, "answered 204 in 0 ms\n"},
		{"redeliver " + id + " 1 1", 0, "1 events are sent again\n"},
		{"redeliver " + id + " 1 x", 2, "malformed position"},
		{"redeliver " + id + " 5 6", 2, "from: position 5 is not stored"},
		{"deliveries " + id, 0, "POSITION  EVENT  RUN  STATE  TRIES  NEXT  LAST RESULT\n"},
		{"deliveries " + id + " --state lost", 2, "unknown state"},
		{"recover " + id + " --since 2026-01-01T00:00:00Z", 2, "no delivery of the webhook has failed"},
		{"recover " + id + " --since yesterday", 2, "--since: "},
		{"recover " + id, 2, "--since"},
		{"rotate " + id, 0, "whsec_"},
		{"rotate " + id + " --now", 0, "whsec_"},
		{"create http://example.org/", 2, "url: "},
		{"create " + receiver.URL + " --type job.exploded", 2, "eventTypes: "},
		{"delete " + id, 0, "deleted " + id + "\n"},
		{"show " + id, 4, "no such webhook"},
		{"listen --forward nowhere", 2, "--forward: "},
		{"listen --forward http://127.0.0.1:9/ --secret x", 2, "--secret: "},
		{"listen --forward http://example.org/", 2, "--forward: "},
	} {
		got := sortie(t, env, "", append([]string{"webhooks"}, strings.Fields(step.args)...)...)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.want) {
			t.Errorf("webhooks %s: got exit code %d with\n%s%s\nwant %d with\n%s", step.args, got.code, got.stdout, got.stderr, step.code, step.want)
		}
	}
	if len(verified) != 1 || verified[0] != nil {
		t.Errorf("got %v from the library of Standard Webhooks, want one valid signature", verified)
	}
	status = http.StatusInternalServerError
	other := sortie(t, env, "", "webhooks", "create", receiver.URL, "--json")
	var w contract.WebhookDetail
	if err := json.Unmarshal([]byte(other.stdout), &w); err != nil || w.Secret == "" {
		t.Fatalf("got %s, %v, want a webhook with its secret", other.stdout, err)
	}
	if got := sortie(t, env, "", "webhooks", "test", w.ID); got.code == 0 || !strings.Contains(got.stderr, "answered 500") {
		t.Errorf("got exit code %d with %s, want the refusal", got.code, got.stderr)
	}
}
