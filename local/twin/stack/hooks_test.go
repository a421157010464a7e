package stack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/secretfile"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// hooks is a hook receiver on loopback. It refuses requests to the path /no.
type hooks struct {
	*httptest.Server
	key hook.Key

	mu sync.Mutex
	// calls has "HOOK STATE" for each signed request.
	calls []string
	// ended receives a value at each onSuccess.
	ended chan struct{}
}

func receiveHooks(t *testing.T, secret string) *hooks {
	t.Helper()
	key, err := hook.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	h := &hooks{key: key, ended: make(chan struct{}, 1)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var body contract.HookBody
		if err == nil {
			err = json.Unmarshal(text, &body)
		}
		signed := http.Header{}
		h.key.Sign(signed, r.Header.Get(hook.HeaderWebhookID), time.Unix(0, 0), text)
		if err != nil || signed.Get(hook.HeaderSignature) != r.Header.Get(hook.HeaderSignature) {
			t.Errorf("got body %s (%v) with signature %q, want a signed HookBody", text, err, r.Header.Get(hook.HeaderSignature))
		}
		h.mu.Lock()
		h.calls = append(h.calls, body.Hook+" "+body.Run.State)
		h.mu.Unlock()
		if body.Hook == contract.HookOnSuccess {
			h.ended <- struct{}{}
		}
		if r.URL.Path == "/no" {
			http.Error(w, `{"detail":"frozen until Monday"}`, http.StatusConflict)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// TestHooksOfARun runs programs whose hooks accept or refuse them, over real HTTP.
func TestHooksOfARun(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	receiver, data := receiveHooks(t, secret), t.TempDir()
	s := start(t, served{Data: data, Settings: map[string]string{"SORTIE_HOOK_ALLOW": "127.0.0.1"}})
	folder := secretfile.Folder(filepath.Join(data, stack.SecretsFolder))
	for name, value := range map[string]string{"hook-key": secret, "report-key": "s3cret-of-the-report"} {
		if err := folder.Put("default", name, value); err != nil {
			t.Fatal(err)
		}
	}
	submit := func(before string) outside.Answer {
		at := func(path string) string {
			return fmt.Sprintf(`{"url": "%s%s", "secretRef": "hook-key"}`, receiver.URL, path)
		}
		return s.Call(http.MethodPost, "/v1/runs", fmt.Sprintf(`{
			"image": "exec:/bin/sh", "command": ["-c", "echo key=$API_KEY"], "env": {"API_KEY": {"secretRef": "report-key"}},
			"constraints": {"preRunHook": {"url": "%s", "secretRef": "hook-key"}, "postRunHook": %s},
			"actions": {"onSuccess": {"type": "webhook", "parameters": %s}}}`, before, at("/yes"), at("/yes")),
			"Authorization", "Bearer "+s.stack.Token())
	}
	run := func(before string) (events, log string) {
		answer := submit(before)
		var accepted struct{ TaskID string }
		if err := json.Unmarshal(answer.Body, &accepted); err != nil || answer.Status != http.StatusAccepted {
			t.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
		}
		s.End(accepted.TaskID)
		for _, e := range s.Events(accepted.TaskID) {
			events += e.Type + " " + e.Message + "\n"
		}
		return events, string(s.Call(http.MethodGet, "/v1/tasks/"+accepted.TaskID+"/logs", "").Body)
	}
	if events, log := run(receiver.URL + "/yes"); !strings.Contains(events, "job.completed") || !strings.Contains(log, "key=") || strings.Contains(log, "s3cret") {
		t.Errorf("allowed run: got events\n%s\nand log\n%s\nwant a success, and the secret masked", events, log)
	}
	<-receiver.ended
	if events, _ := run(receiver.URL + "/no"); !strings.Contains(events, "job.constraint_violated preRunHook: the hook refuses the run: frozen until Monday") {
		t.Errorf("refused run: got events\n%s", events)
	}
	if answer := submit("https://10.0.0.1/"); answer.Status != http.StatusUnprocessableEntity || !strings.Contains(string(answer.Body), "constraints.preRunHook.url") {
		t.Errorf("private address: got %d %s, want 422 with the field", answer.Status, answer.Body)
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	want := []string{"preRunHook ConditionRunning", "postRunHook Completed", "onSuccess Completed", "preRunHook ConditionRunning"}
	if !slices.Equal(receiver.calls, want) {
		t.Errorf("got calls %q, want %q", receiver.calls, want)
	}
}
