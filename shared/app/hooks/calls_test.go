package hooks_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/hooks"
	systemclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// hookCase is a receiver with the calls to it.
type hookCase struct {
	*testing.T
	url     string
	calls   *hooks.Calls
	secrets *fake.Secrets
	log     bytes.Buffer
	// header and body are those of the last request.
	header http.Header
	body   contract.HookBody
	raw    []byte
}

// receiver answers each request of a hook with a status and a body.
func receiver(t *testing.T, status int, answer string) *hookCase {
	t.Helper()
	h := &hookCase{T: t, secrets: fake.NewSecrets(nil)}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if h.raw, err = io.ReadAll(r.Body); err == nil {
			err = json.Unmarshal(h.raw, &h.body)
		}
		if err != nil {
			t.Errorf("got the body %s (%v), want a HookBody", h.raw, err)
		}
		h.header = r.Header
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	policy, err := guard.Policy{}.WithRules("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client := hook.New(hook.Config{Policy: policy, Clock: systemclock.System{}, RootCAs: roots})
	h.url = server.URL + "/t0ken-of-the-receiver"
	h.calls = hooks.NewCalls(client, h.secrets, api.HookBody, "https://sortie.example", slog.New(slog.NewTextHandler(&h.log, nil)))
	return h
}

var hookedRun = run.Run{
	Tenant: "acme", ID: "nightly:20260301T060000Z", TaskID: "job_01", CorrelationID: "c-1", JobID: "nightly", JobVersion: 1,
	State: run.ConditionRunning, Attempt: run.Attempt{Number: 2}, Work: spec.Work{Kind: spec.KindJob, Program: &spec.Program{}},
}

// TestHookDecidesAboutARun checks the result of each answer (RL-4.15).
func TestHookDecidesAboutARun(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status int
		answer string
		want   spec.HookAnswer
	}{
		"allows":      {204, "", spec.HookAnswer{Allowed: true, Detail: "answered 204 No Content"}},
		"refuses":     {409, `{"detail":"frozen until Monday"}`, spec.HookAnswer{Detail: "frozen until Monday"}},
		"unavailable": {302, "", spec.HookAnswer{Unavailable: true, Detail: "answered 302 Found"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := receiver(t, row.status, row.answer)
			got, err := h.calls.Ask(t.Context(), hookedRun, spec.Hook{URL: h.url}, spec.PreRunHook)
			if err != nil || got != row.want {
				t.Errorf("got %+v, %v, want %+v", got, err, row.want)
			}
			if h.body.Hook != "preRunHook" || h.body.Run.TaskID != "job_01" || h.header.Get(hook.HeaderWebhookID) != "job_01-preRunHook" {
				t.Errorf("got id %q and body %s", h.header.Get(hook.HeaderWebhookID), h.raw)
			}
			for _, want := range []string{"run_id=" + hookedRun.ID, "attempt=2", "correlation_id=c-1", "reason=preRunHook"} {
				if !strings.Contains(h.log.String(), want) {
					t.Errorf("got log %s, want %s in it", &h.log, want)
				}
			}
			if strings.Contains(h.log.String(), "t0ken") {
				t.Errorf("got the path of the URL in the log: %s", &h.log)
			}
		})
	}
}

// TestHookIsSignedWithTheSecretOfItsTenant checks EE-5.6.
func TestHookIsSignedWithTheSecretOfItsTenant(t *testing.T) {
	t.Parallel()
	h := receiver(t, http.StatusOK, "")
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	h.secrets.Put("acme", "hook-key", secret)
	h.secrets.Put("other", "hook-key", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	answer, failure, err := h.calls.Notify(t.Context(), hookedRun, spec.Hook{URL: h.url, SecretRef: "hook-key", Headers: map[string]string{"X-Team": "data"}}, "onFailure")
	if err != nil || failure != "" || answer != "answered 200 OK" || h.header.Get("X-Team") != "data" || h.body.Hook != "onFailure" {
		t.Errorf("got answer %q, failure %q (%v) and a request with %v, want it received", answer, failure, err, h.header)
	}
	key, err := hook.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{}
	key.Sign(want, "job_01-onFailure", time.Unix(0, 0), h.raw)
	if got := h.header.Get(hook.HeaderSignature); got == "" || got != want.Get(hook.HeaderSignature) {
		t.Errorf("got signature %q, want %q", got, want.Get(hook.HeaderSignature))
	}
	if strings.Contains(h.log.String(), "whsec") {
		t.Errorf("got the secret in the log: %s", &h.log)
	}
}

func TestHookWithoutAUsableSecretSendsNothing(t *testing.T) {
	t.Parallel()
	h := receiver(t, http.StatusOK, "")
	h.secrets.Put("acme", "plain", "s3cret")
	for name, want := range map[string]string{"missing": `unknown secret "missing"`, "plain": "want whsec_"} {
		_, failure, err := h.calls.Notify(t.Context(), hookedRun, spec.Hook{URL: h.url, SecretRef: name}, "onFailure")
		if err != nil || !strings.Contains(failure, want) || strings.Contains(failure, "s3cret") || h.header != nil {
			t.Errorf("%s: got failure %q, %v, want %q and no request", name, failure, err, want)
		}
		answer, err := h.calls.Ask(t.Context(), hookedRun, spec.Hook{URL: h.url, SecretRef: name}, spec.PostRunHook)
		if err != nil || !answer.Unavailable || answer.Allowed {
			t.Errorf("%s: got %+v, %v, want unavailable", name, answer, err)
		}
	}
}

// TestUnavailableReceiverIsUntaken: a webhook is sent again unless its address refuses it.
func TestUnavailableReceiverIsUntaken(t *testing.T) {
	t.Parallel()
	for status, untaken := range map[int]bool{http.StatusNotFound: true, http.StatusGone: true, http.StatusConflict: false, http.StatusForbidden: false} {
		h := receiver(t, status, "")
		_, failure, err := h.calls.Notify(t.Context(), hookedRun, spec.Hook{URL: h.url}, "onFailure")
		if _, is := errors.AsType[*hook.Untaken](err); is != untaken || is == (failure != "") {
			t.Errorf("%d: got failure %q, %v, want untaken: %v", status, failure, err, untaken)
		}
	}
}

func TestUnreadableSecretIsRetried(t *testing.T) {
	t.Parallel()
	h := receiver(t, http.StatusOK, "")
	secrets := fake.NewSecrets(func(fake.Call) fake.Fate { return fake.Lost })
	calls := hooks.NewCalls(hook.New(hook.Config{Clock: systemclock.System{}}), secrets, api.HookBody, "https://sortie.example", slog.New(slog.DiscardHandler))
	if answer, err := calls.Ask(t.Context(), hookedRun, spec.Hook{URL: h.url, SecretRef: "key"}, spec.PreRunHook); !fault.Is(err, fault.Unavailable) || answer != (spec.HookAnswer{}) {
		t.Errorf("got %+v, %v, want Unavailable", answer, err)
	}
}

func TestHookNeedsTimeForATry(t *testing.T) {
	t.Parallel()
	h := receiver(t, http.StatusOK, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, failure, err := h.calls.Notify(ctx, hookedRun, spec.Hook{URL: h.url}, "onFailure"); !fault.Is(err, fault.Unavailable) || h.header != nil {
		t.Errorf("got failure %q, %v, want Unavailable and no request", failure, err)
	}
}
