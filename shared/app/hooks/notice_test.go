package hooks_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

func failedRun() run.Run {
	r := hookedRun
	r.State, r.Fault = run.Failed, fault.New(fault.ProgramExit, `exited with "3" & <nothing>`)
	r.ScheduledAt = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	r.Inputs = map[string]spec.Value{"day": spec.TextValue("2026-03-01")}
	return r
}

// member returns the value at a path of a JSON document.
func member(t *testing.T, document []byte, path ...any) string {
	t.Helper()
	var at any
	if err := json.Unmarshal(document, &at); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			of, _ := at.(map[string]any)
			at = of[step]
		case int:
			of, _ := at.([]any)
			if step >= len(of) {
				return ""
			}
			at = of[step]
		}
	}
	text, _ := at.(string)
	return text
}

// TestBodiesOfServices checks the members that the services document.
func TestBodiesOfServices(t *testing.T) {
	t.Parallel()
	h := receiver(t, http.StatusOK, "ok")
	h.secrets.Put("acme", "address", h.url+"\n")
	h.secrets.Put("acme", "routing", "r0uting")
	send := func(hooked spec.Hook, reason string) []byte {
		t.Helper()
		if _, failure, err := h.calls.Notify(t.Context(), failedRun(), hooked, reason); err != nil || failure != "" {
			t.Fatalf("got failure %q, %v", failure, err)
		}
		return h.raw
	}
	slack := send(spec.Hook{SecretRef: "address", Notice: &spec.Notice{Service: spec.ServiceSlack}}, "onFailure-2")
	text := member(t, slack, "text")
	if !strings.HasPrefix(text, "Job nightly: onFailure, run nightly:20260301T060000Z, attempt 2. PROGRAM_EXIT: exited with \"3\" &amp; &lt;nothing&gt;") || !strings.HasSuffix(text, "https://sortie.example/console/runs/job_01") {
		t.Errorf("got text %q", text)
	}
	if got := member(t, slack, "blocks", 0, "text", "text"); got != text || member(t, slack, "blocks", 1, "fields", 0, "text") != "*Job*\nnightly" {
		t.Errorf("got Slack's body %s", slack)
	}
	teams := send(spec.Hook{SecretRef: "address", Notice: &spec.Notice{Service: spec.ServiceTeams, Text: "{{event}} of {{inputs.day}}"}}, "onRetry#1")
	if member(t, teams, "type") != "message" || member(t, teams, "attachments", 0, "contentType") != "application/vnd.microsoft.card.adaptive" ||
		member(t, teams, "attachments", 0, "content", "body", 0, "text") != "onRetry of 2026-03-01" || member(t, teams, "attachments", 0, "content", "type") != "AdaptiveCard" {
		t.Errorf("got the body of Teams %s", teams)
	}
	duty := spec.Hook{URL: h.url, SecretRef: "routing", Notice: &spec.Notice{Service: spec.ServicePagerDuty, Severity: "critical"}}
	page := send(duty, "onFailure")
	for want, path := range map[string][]any{
		"r0uting": {"routing_key"}, "trigger": {"event_action"}, "sortie/acme/nightly": {"dedup_key"}, "critical": {"payload", "severity"},
		"sortie": {"payload", "source"}, "https://sortie.example/console/runs/job_01": {"client_url"},
	} {
		if got := member(t, page, path...); got != want {
			t.Errorf("%v: got %q, want %q", path, got, want)
		}
	}
	if resolved := send(duty, "onSuccess"); member(t, resolved, "event_action") != "resolve" || member(t, resolved, "dedup_key") != "sortie/acme/nightly" {
		t.Errorf("got %s, want the incident resolved", resolved)
	}
	custom := send(spec.Hook{URL: h.url, Notice: &spec.Notice{Body: `{"a": ["{{message}}", {"b": "{{attempt}}{{{{"}]}`}}, "onFailure")
	if member(t, custom, "a", 0) != `PROGRAM_EXIT: exited with "3" & <nothing>` || member(t, custom, "a", 1, "b") != "2{{" {
		t.Errorf("got %s", custom)
	}
	if log := h.log.String(); strings.Contains(log, "t0ken") || strings.Contains(log, "r0uting") {
		t.Errorf("got a secret in the log: %s", log)
	}
}

// TestSecretAddressIsGuarded refuses addresses that only a secret has.
func TestSecretAddressIsGuarded(t *testing.T) {
	t.Parallel()
	h := receiver(t, http.StatusOK, "ok")
	for _, address := range []string{"https://169.254.169.254/s3cret", "http://example.org/s3cret", "https://10.0.0.1/s3cret", "s3cret", "smtp://example.org:587"} {
		h.secrets.Put("acme", "address", address)
		_, failure, err := h.calls.Notify(t.Context(), failedRun(), spec.Hook{SecretRef: "address", Notice: &spec.Notice{Service: spec.ServiceSlack}}, "onFailure")
		if err != nil || failure == "" || strings.Contains(failure, "s3cret") || h.header.Get(hook.HeaderWebhookID) != "" {
			t.Errorf("%s: got failure %q, %v, want it refused without its path", address, failure, err)
		}
	}
}
