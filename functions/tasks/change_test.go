package tasks_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func post[T any](t *testing.T, stage *apitest.Stage, path, body string, status int, headers ...string) T {
	t.Helper()
	v, _ := apitest.Decoded[T](t, stage, http.MethodPost, path, body, status, headers...)
	return v
}

func TestCancelMessages(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		play         func(t *testing.T, stage *apitest.Stage) (task string)
		status       int
		result, want string
	}{
		"pending": {func(t *testing.T, stage *apitest.Stage) string { return stage.Accept(t) }, 200, "cancelled", "Cancelled"},
		"running without a call of the worker": {func(t *testing.T, stage *apitest.Stage) string {
			task := stage.Accept(t)
			stage.Start(t, task)
			return task
		}, 202, "requested", "SIGTERM"},
		"terminating": {func(t *testing.T, stage *apitest.Stage) string {
			task := stage.Accept(t)
			stage.Start(t, task)
			stage.Report(t, task, contract.Callback{Status: "error", Error: "no manifest"})
			return task
		}, 202, "requested", "cleaned up"},
		"terminating with a success": {func(t *testing.T, stage *apitest.Stage) string {
			task := stage.Accept(t)
			stage.Start(t, task)
			stage.Report(t, task, contract.Callback{Status: "success"})
			return task
		}, 200, "too_late", "reported success"},
		"succeeded": {func(t *testing.T, stage *apitest.Stage) string {
			return stage.Success(t, "a.xml", "application/xml", "<a/>")
		}, 200, "too_late", "Completed"},
		"failed": {func(t *testing.T, stage *apitest.Stage) string { return stage.Failure(t, "no") }, 200, "too_late", "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage := setup(t)
			path := "/v1/tasks/" + row.play(t, stage) + "/cancel"
			for _, body := range []string{`{"reason":"user_requested"}`, "", `{}`} {
				answer := post[contract.CancelAnswer](t, stage, path, body, row.status)
				if answer.Result != row.result || !strings.Contains(answer.Message, row.want) {
					t.Errorf("body %s: got %+v, want %s with %q", body, answer, row.result, row.want)
				}
			}
		})
	}
}

func TestCancelKeepsItsFirstReason(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	stage.Start(t, task)
	long := strings.Repeat("r", 5000)
	post[contract.CancelAnswer](t, stage, "/v1/tasks/"+task+"/cancel", `{"reason":"`+long+`"}`, 202)
	post[contract.CancelAnswer](t, stage, "/v1/tasks/"+task+"/cancel", `{"reason":"another"}`, 202)
	shown := get[contract.Task](t, stage, "/v1/tasks/"+task)
	if shown.Cancel == nil || len(shown.Cancel.Reason) > 2<<10 || !strings.HasSuffix(shown.Cancel.Reason, "(cut)") || shown.Cancel.By != "localhost" {
		t.Errorf("got cancel request %+v, want a reason cut at 2 KiB by localhost", shown.Cancel)
	}
}

func TestRetryCreatesATask(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	old := stage.Failure(t, "no manifest")
	path := "/v1/tasks/" + old + "/retry"
	first := post[contract.RetryAccepted](t, stage, path, "", 202, "Idempotency-Key", "again", "Content-Type", "")
	if first.TaskID == old || first.RetryOf != old || first.State != "Pending" {
		t.Errorf("got %+v, want a new pending task that retries %s", first, old)
	}
	same := post[contract.RetryAccepted](t, stage, path, "{}", 200, "Idempotency-Key", "again")
	other := post[contract.RetryAccepted](t, stage, path, "", 202)
	if same.TaskID != first.TaskID || other.TaskID == first.TaskID {
		t.Errorf("got task %s with the same key and %s without, want %s and a new one", same.TaskID, other.TaskID, first.TaskID)
	}
	was, is := stage.Run(t, old), stage.Run(t, first.TaskID)
	if string(was.Work.Options) != string(is.Work.Options) || was.Work.PI != is.Work.PI || is.Attempt.Number != 0 || is.Spent != (run.Spent{}) {
		t.Errorf("got %+v, want the work of %+v in a first attempt", is, was)
	}
	if shown := get[contract.Task](t, stage, "/v1/tasks/"+first.TaskID); shown.RetryOf != old {
		t.Errorf("got retryOf %q, want %q", shown.RetryOf, old)
	}
}

func TestRetryOfAnExportHasOtherOptions(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	old := stage.Failure(t, "no manifest")
	before := stage.Run(t, old)
	again := post[contract.RetryAccepted](t, stage, "/v1/runs/"+old+"/retry", `{"options":{"maxDepth":2},"priority":"batch"}`, 202)
	r := stage.Run(t, again.TaskID)
	if !strings.Contains(string(r.Work.Options), `"maxDepth":2`) || r.Work.PI != before.Work.PI || r.Priority != spec.PriorityBatch || r.PayloadDigest == before.PayloadDigest {
		t.Errorf("got %+v, want the changes", r)
	}
	if now := stage.Run(t, old); string(now.Work.Options) != string(before.Work.Options) || now.Priority != before.Priority {
		t.Errorf("got %+v, want the old run unchanged", now)
	}
}

// TestKnownRetryNeedsNoRoom repeats a retry while the queue is full.
//
// Rule 10 of shared/README.md.
func TestKnownRetryNeedsNoRoom(t *testing.T) {
	t.Parallel()
	const room = 3
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, routes(parts.Signer), func(s *apitest.Settings) { s.Service.QueueLimit = room })
	old, other := stage.Failure(t, "no manifest"), stage.Failure(t, "no manifest")
	path := "/v1/tasks/" + old + "/retry"
	first := post[contract.RetryAccepted](t, stage, path, "", 202, "Idempotency-Key", "again")
	for range 2 * room {
		stage.Call(t, http.MethodPost, path, "")
	}
	if same := post[contract.RetryAccepted](t, stage, path, "", 200, "Idempotency-Key", "again"); same.TaskID != first.TaskID {
		t.Errorf("got task %s with a known key, want %s", same.TaskID, first.TaskID)
	}
	post[contract.Problem](t, stage, "/v1/tasks/"+other+"/retry", "", 422, "Idempotency-Key", "again")
	post[contract.Problem](t, stage, path, "", 429, "Idempotency-Key", "new")
	post[contract.Problem](t, stage, path, "", 429)
}

func TestRejectedChanges(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	failed := stage.Failure(t, "no")
	for _, row := range []struct {
		path, body, key string
		status          int
		code, field     string
	}{
		{"/v1/tasks/none/cancel", "", "", 404, "NOT_FOUND", ""},
		{"/v1/tasks/none/retry", "", "", 404, "NOT_FOUND", ""},
		{"/v1/tasks/" + task + "/retry", "", "", 409, "NOT_ENDED", ""},
		{"/v1/tasks/" + task + "/cancel", `{"why":"x"}`, "", 400, "INVALID_REQUEST", "why"},
		{"/v1/tasks/" + task + "/cancel", `{"reason":1}`, "", 400, "INVALID_REQUEST", "reason"},
		{"/v1/tasks/" + task + "/cancel", `reason`, "", 400, "INVALID_REQUEST", ""},
		{"/v1/tasks/" + failed + "/retry", `{"pi":"x"}`, "", 400, "INVALID_REQUEST", "pi"},
		{"/v1/tasks/" + failed + "/retry", `{"image":"x"}`, "", 400, "INVALID_REQUEST", "image"},
		{"/v1/tasks/" + failed + "/retry", `{"command":[]}`, "", 400, "INVALID_REQUEST", "command"},
		{"/v1/tasks/" + failed + "/retry", `{"parameters":{}}`, "", 400, "INVALID_REQUEST", "parameters"},
		{"/v1/tasks/" + failed + "/retry", `{"options":{"maxDepth":101}}`, "", 400, "INVALID_REQUEST", "options.maxDepth"},
		{"/v1/tasks/" + failed + "/retry", `{"priority":"high"}`, "", 400, "INVALID_REQUEST", "priority"},
		{"/v1/tasks/" + failed + "/retry", "", strings.Repeat("k", 256), 400, "INVALID_REQUEST", "Idempotency-Key"},
	} {
		headers := []string{}
		if row.key != "" {
			headers = append(headers, "Idempotency-Key", row.key)
		}
		p := post[contract.Problem](t, stage, row.path, row.body, row.status, headers...)
		if p.Code != row.code || p.Field != row.field {
			t.Errorf("%s %s: got %s for %q, want %s for %q", row.path, row.body, p.Code, p.Field, row.code, row.field)
		}
	}
	if state := stage.Run(t, task).State; state != run.Pending {
		t.Errorf("got task %s, want %s", state, run.Pending)
	}
}

func TestKeysAreServed(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	keys, err := stage.Signer.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set := get[contract.KeySet](t, stage, "/.well-known/jwks.json")
	var first contract.Key
	if err := json.Unmarshal(set.Keys[0], &first); err != nil || len(set.Keys) != len(keys)+1 || first.KeyID != keys[0].ID {
		t.Errorf("got keys %s (%v), want the %d published keys and one of events", set.Keys, err, len(keys))
	}
	for _, text := range set.Keys {
		var k struct{ Kty, Crv, Kid string }
		if err := json.Unmarshal(text, &k); err != nil {
			t.Fatal(err)
		}
		want := [2]string{"EC", "P-256"}
		if strings.HasPrefix(k.Kid, "event-") {
			want = [2]string{"OKP", "Ed25519"}
		}
		if [2]string{k.Kty, k.Crv} != want {
			t.Errorf("got key %s, want kty and crv %v", text, want)
		}
	}
	document, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if ofEvents, err := events.ParseKeys(document); err != nil || len(ofEvents) != 1 {
		t.Errorf("got %d keys of events (%v), want 1", len(ofEvents), err)
	}
}

// TestPinAttacks sends what clients may send by mistake or in bad faith; see also the console.
func TestPinAttacks(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Success(t, "out.xml", "application/xml", "<out/>")
	path := "/v1/runs/" + task
	for name, row := range map[string]struct {
		path, body string
		status     int
	}{
		"a field":      {path + "/pin", `{"expiresAt":"2100-01-01T00:00:00Z"}`, 400},
		"a list":       {path + "/pin", `[]`, 400},
		"no JSON":      {path + "/pin", `pin`, 400},
		"too large":    {path + "/pin", `{"x":"` + strings.Repeat("x", 2<<20) + `"}`, 413},
		"unknown run":  {"/v1/runs/none/pin", ``, 404},
		"a hostile id": {"/v1/runs/no%0d%0aX:%20y/pin", ``, 404},
		"not pinned":   {path + "/unpin", ``, 200},
	} {
		if answer := stage.Call(t, http.MethodPost, row.path, row.body, "Content-Type", "application/json"); answer.Status != row.status {
			t.Errorf("%s: got %d %s, want %d", name, answer.Status, answer.Body, row.status)
		}
	}
	if r := stage.Run(t, task); r.Pin != nil {
		t.Fatal("got a run that is pinned by a refused request")
	}
	for _, what := range []string{"pin", "pin", "unpin"} {
		shown := post[contract.Task](t, stage, path+"/"+what, "", 200)
		if pinned := what == "pin"; (shown.Pin != nil) != pinned || shown.Output.ExpiresAt.IsZero() != pinned || shown.ExpiresAt.IsZero() != pinned {
			t.Errorf("%s: got %+v", what, shown)
		}
	}
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	path := "/v1/runs/" + stage.Success(t, "out.xml", "application/xml", "<out/>") + "/redeliver"
	for name, row := range map[string]struct {
		path, body string
		status     int
		field      string
	}{
		"nothing has failed": {path, ``, 200, ""},
		"of an action":       {path, `{"action":"onFailure"}`, 400, "action"},
		"a hostile action":   {path, `{"action":"\u0000\u202e#-1"}`, 400, "action"},
		"a long action":      {path, `{"action":"` + strings.Repeat("x", 65) + `"}`, 400, "action"},
		"a number":           {path, `{"action":1}`, 400, "action"},
		"a field":            {path, `{"position":1}`, 400, "position"},
		"no JSON":            {path, `all`, 400, ""},
		"too large":          {path, `{"x":"` + strings.Repeat("x", 2<<20) + `"}`, 413, ""},
		"unknown run":        {"/v1/runs/none/redeliver", ``, 404, ""},
		"a hostile id":       {"/v1/runs/no%0d%0aX:%20y/redeliver", ``, 404, ""},
	} {
		answer := stage.Call(t, http.MethodPost, row.path, row.body, "Content-Type", "application/json")
		var p contract.Problem
		if err := json.Unmarshal([]byte(answer.Body), &p); err != nil || answer.Status != row.status || p.Field != row.field {
			t.Errorf("%s: got %d %s, want %d of the field %q", name, answer.Status, answer.Body, row.status, row.field)
		}
	}
}
