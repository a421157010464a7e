package callback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const failed = `{"task_id":"%s","batch_id":"single","status":"error","error":"no manifest"}`

func setup(t *testing.T) *apitest.Stage {
	t.Helper()
	return apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return callback.Routes(s.Workers, s.Intake) })
}

func problem(t *testing.T, answer apitest.Answer) contract.Problem {
	t.Helper()
	var p contract.Problem
	if err := json.Unmarshal([]byte(answer.Body), &p); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	return p
}

func success(taskID string, size int) string {
	return fmt.Sprintf(`{"task_id":%q,"batch_id":"single","status":"success","output_r2_key":"exports/%[1]s/a.xml",`+
		`"output_file_name":"a.xml","output_file_size":%[2]d,"metrics":{"total_time_ms":2934,"own":{"deep":[1,2,{"x":null}]}}}`, taskID, size)
}

func wantReceived(t *testing.T, answer apitest.Answer) {
	t.Helper()
	if answer.Status != http.StatusOK || strings.TrimSpace(answer.Body) != `{"received":true}` {
		t.Fatalf("got %d %s, want 200 and received", answer.Status, answer.Body)
	}
}

func TestSuccessIsAccepted(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	url := stage.Start(t, task)
	wantReceived(t, stage.Call(t, http.MethodPost, url, success(task, 5)))
	r := stage.Run(t, task)
	if r.State != run.Terminating || r.Attempt.Outcome != run.OutcomeSucceeded || r.Attempt.Report.Upload.Size != 5 {
		t.Errorf("got state %s with outcome %s, want %s with %s and an upload of 5 bytes", r.State, r.Attempt.Outcome, run.Terminating, run.OutcomeSucceeded)
	}
	if !strings.Contains(string(r.Attempt.Report.Metrics), `"deep":[1,2,{"x":null}]`) {
		t.Errorf("got metrics %s, want the nested object unchanged", r.Attempt.Report.Metrics)
	}
	version := r.Version
	wantReceived(t, stage.Call(t, http.MethodPost, url, success(task, 5)))
	if again := stage.Run(t, task).Version; again != version {
		t.Errorf("got version %d after a repeated callback, want %d", again, version)
	}
}

func TestErrorIsAccepted(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	url := stage.Start(t, task)
	wantReceived(t, stage.Call(t, http.MethodPost, url, fmt.Sprintf(failed, task)))
	if r := stage.Run(t, task); r.Attempt.Outcome != run.OutcomeFailed || r.Fault.Message != "no manifest" {
		t.Errorf("got outcome %s: %v, want %s: no manifest", r.Attempt.Outcome, r.Fault, run.OutcomeFailed)
	}
}

func TestTokenMayComeInTheHeader(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	path, token, _ := strings.Cut(stage.Start(t, task), "?token=")
	wantReceived(t, stage.Call(t, http.MethodPost, path, success(task, 5), "Authorization", "bearer "+token))
	wantReceived(t, stage.Call(t, http.MethodPost, path+"?token="+token, success(task, 5), "Authorization", "Bearer "+token))
	other := stage.Call(t, http.MethodPost, path+"?token="+token, success(task, 5), "Authorization", "Bearer other")
	if other.Status != http.StatusUnauthorized {
		t.Errorf("got %d for two different tokens, want 401", other.Status)
	}
}

func TestLenientBodiesAreAccepted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, body, contentType string }{
		{"unknown fields", `{"status":"success","worker":"v2","extra":{"a":1}}`, "application/json"},
		{"nulls", `{"status":"error","error":null,"metrics":null,"output_r2_key":null,"output_file_size":null}`, "application/json"},
		{"no content type", `{"status":"success"}`, ""},
		{"curl's data without a header", `{"status":"success"}`, "application/x-www-form-urlencoded"},
		{"a content type with charset", `{"status":"success"}`, "application/json; charset=UTF-8"},
		{"a text that is not UTF-8", "{\"status\":\"error\",\"error\":\"caf\xe9\"}", "application/json"},
		{"a very long text", `{"status":"error","error":"` + strings.Repeat("long ", 200_000) + `"}`, "application/json"},
		{"very long metrics", `{"status":"success","metrics":{"log":"` + strings.Repeat("x", 1_000_000) + `"}}`, "application/json"},
		{"metrics with a name twice", `{"status":"success","metrics":{"a":1,"a":2}}`, "application/json"},
		{"deep metrics", `{"status":"success","metrics":` + strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5001), "application/json"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stage := setup(t)
			url := stage.Start(t, stage.Accept(t))
			wantReceived(t, stage.Call(t, http.MethodPost, url, row.body, "Content-Type", row.contentType))
		})
	}
}

func TestInvalidBodiesNameTheField(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	url := stage.Start(t, task)
	version := stage.Run(t, task).Version
	upload := func(key string) string {
		return fmt.Sprintf(`{"status":"success","output_r2_key":%q,"output_file_name":"a.xml","output_file_size":5}`, key)
	}
	for _, row := range []struct {
		name, body  string
		contentType string
		status      int
		field       string
	}{
		{"no status", `{}`, "", 400, "status"},
		{"unknown status", `{"status":"processing"}`, "", 400, "status"},
		{"status of a wrong type", `{"status":true}`, "", 400, "status"},
		{"status twice", `{"status":"error","status":"success"}`, "", 400, "status"},
		{"another task", `{"status":"success","task_id":"export_mods_1_00000000"}`, "", 409, "task_id"},
		{"another batch", `{"status":"success","batch_id":"another"}`, "", 409, "batch_id"},
		{"key outside of the task", upload("exports/other/a.xml"), "", 400, "output_r2_key"},
		{"key that climbs", upload("exports/" + task + "/../x"), "", 400, "output_r2_key"},
		{"key is a number", `{"status":"success","output_r2_key":5}`, "", 400, "output_r2_key"},
		{"not JSON", `status=success`, "", 400, ""},
		{"a form", `status=success`, "application/x-www-form-urlencoded", 415, "Content-Type"},
		{"over 4 MiB", `{"status":"error","error":"` + strings.Repeat("x", 4<<20) + `"}`, "", 413, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			contentType := row.contentType
			if contentType == "" {
				contentType = "application/json"
			}
			answer := stage.Call(t, http.MethodPost, url, row.body, "Content-Type", contentType)
			if p := problem(t, answer); answer.Status != row.status || p.Field != row.field {
				t.Errorf("got %d for %q, want %d for %q: %s", answer.Status, p.Field, row.status, row.field, p.Detail)
			}
			if now := stage.Run(t, task).Version; now != version {
				t.Errorf("got version %d, want %d", now, version)
			}
		})
	}
}

func TestContradictionIsRefused(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	url := stage.Start(t, task)
	wantReceived(t, stage.Call(t, http.MethodPost, url, success(task, 5)))
	answer := stage.Call(t, http.MethodPost, url, fmt.Sprintf(failed, task))
	p := problem(t, answer)
	if answer.Status != http.StatusConflict || p.Error != "task_already_terminal" || p.State != "SUCCEEDED" || p.Message == "" {
		t.Errorf("got %d %s, want 409 task_already_terminal with state SUCCEEDED", answer.Status, answer.Body)
	}
}

func TestTimedOutAttemptReturns410(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	url := stage.Start(t, task)
	stage.LoseMachine(t, task)
	answer := stage.Call(t, http.MethodPost, url, success(task, 5))
	if p := problem(t, answer); answer.Status != http.StatusGone || p.Error != "task_expired" || p.Message == "" {
		t.Errorf("got %d %s, want 410 task_expired", answer.Status, answer.Body)
	}
}

func TestStaleAttemptGetsBothNumbers(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	first := stage.Start(t, task)
	stage.LoseMachine(t, task)
	stage.Clock.Advance(time.Minute)
	second := stage.Start(t, task)
	answer := stage.Call(t, http.MethodPost, first, success(task, 5))
	p := problem(t, answer)
	if answer.Status != http.StatusConflict || p.Error != "attempt_mismatch" || p.ExpectedAttempt != 2 || p.ReceivedAttempt != 1 {
		t.Errorf("got %d %s, want 409 attempt_mismatch for attempt 1 instead of 2", answer.Status, answer.Body)
	}
	wantReceived(t, stage.Call(t, http.MethodPost, second, success(task, 5)))
}

func TestUnknownTaskIsRejected(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	url := stage.Start(t, stage.Accept(t))
	_, token, _ := strings.Cut(url, "?token=")
	for path, want := range map[string]int{
		"/callback/export_mods_1_00000000?token=" + token: http.StatusForbidden,
		"/callback/export_mods_1_00000000":                http.StatusUnauthorized,
		url + "&debug=1":                                  http.StatusBadRequest,
	} {
		if answer := stage.Call(t, http.MethodPost, path, `{"status":"success"}`); answer.Status != want {
			t.Errorf("got %d, want %d", answer.Status, want)
		}
	}
	if answer := stage.Call(t, http.MethodGet, url, ""); answer.Status != http.StatusMethodNotAllowed || answer.Header.Get("Allow") != "POST" {
		t.Errorf("GET: got %d, Allow %q, want 405, Allow POST", answer.Status, answer.Header.Get("Allow"))
	}
	if strings.Contains(stage.Logs(), token) {
		t.Error("got a token in the log, want none")
	}
}
