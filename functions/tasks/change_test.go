package tasks_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/httpkit/apitest"
	"github.com/sortie-dev/sortie/shared/run"
)

func post[T any](t *testing.T, stage *apitest.Stage, path, body string, status int, headers ...string) T {
	t.Helper()
	answer := stage.Call(t, http.MethodPost, path, body, headers...)
	var v T
	if err := json.Unmarshal([]byte(answer.Body), &v); err != nil || answer.Status != status {
		t.Fatalf("%s is answered %d %s (%v), want %d", path, answer.Status, answer.Body, err, status)
	}
	return v
}

func TestACancelSaysWhatHappensNext(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		play         func(t *testing.T, stage *apitest.Stage) (task string)
		status       int
		result, says string
	}{
		"that waits": {func(t *testing.T, stage *apitest.Stage) string { return stage.Accept(t) }, 200, "cancelled", "Cancelled"},
		"whose worker was never heard": {func(t *testing.T, stage *apitest.Stage) string {
			task := stage.Accept(t)
			stage.Start(t, task)
			return task
		}, 202, "requested", "SIGTERM"},
		"that is being cleaned up": {func(t *testing.T, stage *apitest.Stage) string {
			task := stage.Accept(t)
			stage.Start(t, task)
			stage.Report(t, task, contract.Callback{Status: "success"})
			return task
		}, 202, "requested", "cleaned up"},
		"that has succeeded": {func(t *testing.T, stage *apitest.Stage) string {
			return stage.Success(t, "a.xml", "application/xml", "<a/>")
		}, 200, "too_late", "Completed"},
		"that has failed": {func(t *testing.T, stage *apitest.Stage) string { return stage.Failure(t, "no") }, 200, "too_late", "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage := setup(t)
			path := "/v1/tasks/" + row.play(t, stage) + "/cancel"
			for _, body := range []string{`{"reason":"user_requested"}`, "", `{}`} {
				answer := post[contract.CancelAnswer](t, stage, path, body, row.status)
				if answer.Result != row.result || !strings.Contains(answer.Message, row.says) {
					t.Errorf("the answer to %s is %+v", body, answer)
				}
			}
		})
	}
}

func TestACancelKeepsItsFirstReason(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	stage.Start(t, task)
	long := strings.Repeat("r", 5000)
	post[contract.CancelAnswer](t, stage, "/v1/tasks/"+task+"/cancel", `{"reason":"`+long+`"}`, 202)
	post[contract.CancelAnswer](t, stage, "/v1/tasks/"+task+"/cancel", `{"reason":"another"}`, 202)
	shown := get[contract.Task](t, stage, "/v1/tasks/"+task)
	if shown.Cancel == nil || len(shown.Cancel.Reason) > 2<<10 || !strings.HasSuffix(shown.Cancel.Reason, "(cut)") || shown.Cancel.By != "localhost" {
		t.Errorf("the wish is %+v", shown.Cancel)
	}
}

func TestARetryIsANewTask(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	old := stage.Failure(t, "no manifest")
	path := "/v1/tasks/" + old + "/retry"
	first := post[contract.RetryAccepted](t, stage, path, "", 202, "Idempotency-Key", "again", "Content-Type", "")
	if first.TaskID == old || first.RetryOf != old || first.State != "Pending" {
		t.Errorf("the answer is %+v", first)
	}
	same := post[contract.RetryAccepted](t, stage, path, "{}", 200, "Idempotency-Key", "again")
	other := post[contract.RetryAccepted](t, stage, path, "", 202)
	if same.TaskID != first.TaskID || other.TaskID == first.TaskID {
		t.Errorf("under the same key there is %s, under none %s; the first was %s", same.TaskID, other.TaskID, first.TaskID)
	}
	was, is := stage.Run(t, old), stage.Run(t, first.TaskID)
	if string(was.Work.Options) != string(is.Work.Options) || was.Work.PI != is.Work.PI || is.Attempt.Number != 0 || is.Spent != (run.Spent{}) {
		t.Errorf("it is %+v", is)
	}
	if shown := get[contract.Task](t, stage, "/v1/tasks/"+first.TaskID); shown.RetryOf != old {
		t.Errorf("it shows a retry of %q", shown.RetryOf)
	}
}

func TestWhatCannotBeChangedIsSaid(t *testing.T) {
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
		{"/v1/tasks/" + failed + "/retry", "", strings.Repeat("k", 256), 400, "INVALID_REQUEST", "Idempotency-Key"},
	} {
		headers := []string{}
		if row.key != "" {
			headers = append(headers, "Idempotency-Key", row.key)
		}
		p := post[contract.Problem](t, stage, row.path, row.body, row.status, headers...)
		if p.Code != row.code || p.Field != row.field {
			t.Errorf("%s %s is answered with %s about %q", row.path, row.body, p.Code, p.Field)
		}
	}
	if state := stage.Run(t, task).State; state != run.Pending {
		t.Errorf("the task is %s", state)
	}
}

func TestTheKeysAreServed(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	keys, err := stage.Signer.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set := get[contract.KeySet](t, stage, "/.well-known/jwks.json")
	if len(set.Keys) != len(keys) || set.Keys[0].KeyID != keys[0].ID {
		t.Errorf("the keys are %+v", set.Keys)
	}
}
