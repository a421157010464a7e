package runs_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// token is a client token of the local system.
const token = "token-of-the-test"

// setup returns a stage whose tokens are not required. exec allows programs of the host.
func setup(t *testing.T, exec bool) *apitest.Stage {
	t.Helper()
	parts := apitest.NewParts(t)
	return apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return append(append(slices.Concat(runs.Routes(s.Definitions, s.Explanations), runs.ChildRoutes(s.Children)), callback.Routes(s.Workers, s.Intake)...), tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: parts.Signer, Events: fake.NewEventKeys(nil)}, "")...)
	}, func(s *apitest.Settings) {
		s.Service.Host.Exec = exec
		s.Server.Tokens = optional{access.Full("dev", token, apitest.Tenant, "main")}
	})
}

// optional is a token source whose token no caller needs.
type optional struct{ access.Token }

func (o optional) Current(context.Context) ([]access.Token, bool, error) {
	return []access.Token{o.Token}, false, nil
}
func (optional) Refused() {}

func post(t *testing.T, stage *apitest.Stage, path, body string, headers ...string) apitest.Answer {
	t.Helper()
	return stage.Call(t, http.MethodPost, path, body, headers...)
}

func accepted(t *testing.T, answer apitest.Answer, status int) contract.RunAccepted {
	t.Helper()
	var v contract.RunAccepted
	if err := json.Unmarshal([]byte(answer.Body), &v); err != nil || answer.Status != status {
		t.Fatalf("got %d %s, want %d", answer.Status, answer.Body, status)
	}
	return v
}

func problem(t *testing.T, answer apitest.Answer) contract.Problem {
	t.Helper()
	var p contract.Problem
	if err := json.Unmarshal([]byte(answer.Body), &p); err != nil {
		t.Fatalf("got %d %s: %v", answer.Status, answer.Body, err)
	}
	return p
}

func TestInputIsStoredWithTheRun(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	input := "\x00\xff bytes"
	body := `{"image":"a","command":["-x"],"input":"` + base64.StdEncoding.EncodeToString([]byte(input)) + `","env":{"A":"b","K":{"secretRef":"key"}}}`
	one := accepted(t, post(t, stage, "/v1/runs", body, "Idempotency-Key", "k"), http.StatusAccepted)
	r := stage.Run(t, one.TaskID)
	if r.Work.Kind != spec.KindJob || r.Trigger != run.TriggerRequest || r.ID != r.TaskID || r.Work.Program.Input.Size != int64(len(input)) {
		t.Errorf("got %+v, want a run of a job by a request with an input", r)
	}
	if got := stored(t, stage, r); got != input {
		t.Errorf("got input %q, want %q", got, input)
	}
	again := accepted(t, post(t, stage, "/v1/runs", body, "Idempotency-Key", "k"), http.StatusOK)
	if again.TaskID != one.TaskID || stage.Objects.Count(port.Accepted) != 1 {
		t.Errorf("got %s and %d inputs for a repeated request, want %s and 1", again.TaskID, stage.Objects.Count(port.Accepted), one.TaskID)
	}
	other := post(t, stage, "/v1/runs", strings.Replace(body, "-x", "-y", 1), "Idempotency-Key", "k")
	if p := problem(t, other); other.Status != http.StatusUnprocessableEntity || p.Code != "IDEMPOTENCY_MISMATCH" || stage.Objects.Count(port.Accepted) != 1 {
		t.Errorf("got %d %s and %d inputs for another run, want 422 and 1", other.Status, p.Code, stage.Objects.Count(port.Accepted))
	}
	var shown contract.Task
	if err := json.Unmarshal([]byte(stage.Call(t, http.MethodGet, "/v1/runs/"+one.RunID, "").Body), &shown); err != nil {
		t.Fatal(err)
	}
	if p := shown.Program; p == nil || p.Image != "a" || p.Env["A"].Value != "b" || p.Env["K"].SecretRef != "key" || p.Completion != "exit" || p.Logs != "keep" {
		t.Errorf("got program %+v, want what was requested", shown.Program)
	}
}

// stored reads the stored input of a run.
func stored(t *testing.T, stage *apitest.Stage, r run.Run) string {
	t.Helper()
	body, _, err := stage.Objects.Open(t.Context(), port.Accepted, limit.InputKey(r.Tenant, r.TaskID), port.Span{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRetryCopiesTheInput checks that a retry has a copy of the input, because the first run's
// input is deleted with its record.
func TestRetryCopiesTheInput(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	one := accepted(t, post(t, stage, "/v1/runs", `{"image":"a","input":"YWJj"}`), http.StatusAccepted)
	post(t, stage, "/v1/runs/"+one.RunID+"/cancel", "")
	again := accepted(t, post(t, stage, "/v1/runs/"+one.RunID+"/retry", ""), http.StatusAccepted)
	first, second := stage.Run(t, one.TaskID), stage.Run(t, again.TaskID)
	if second.RetryOf != first.TaskID || second.Work.Program.Input.Key == first.Work.Program.Input.Key || stored(t, stage, second) != "abc" {
		t.Errorf("got input %+v of a retry of %s, want a copy of %+v", second.Work.Program.Input, second.RetryOf, first.Work.Program.Input)
	}
}

func TestRetryHasChanges(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	one := accepted(t, post(t, stage, "/v1/runs", `{"image":"a","command":["-x"],"env":{"A":"1","B":"2","K":{"secretRef":"key"}},"input":"YWJj"}`), http.StatusAccepted)
	post(t, stage, "/v1/runs/"+one.RunID+"/cancel", "")
	before := stage.Run(t, one.TaskID)
	path := "/v1/runs/" + one.RunID + "/retry"
	changed := accepted(t, post(t, stage, path, `{"image":"b","command":[],"parameters":{"B":"3","C":"4"}}`, "Idempotency-Key", "k"), http.StatusAccepted)
	r := stage.Run(t, changed.TaskID)
	env := r.Work.Program.Env
	if r.Work.Image != "b" || len(r.Work.Program.Command) != 0 || env["A"].Value != "1" || env["B"].Value != "3" || env["C"].Value != "4" || env["K"].SecretRef != "key" ||
		r.RetryOf != one.TaskID || stored(t, stage, r) != "abc" {
		t.Errorf("got %+v with %+v, want the changes and the rest of the old run", r.Work, r.Work.Program)
	}
	if diff := cmp.Diff(before, stage.Run(t, one.TaskID), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("the old run has changed (-want +got)\n%s", diff)
	}
	if answer := post(t, stage, path, `{"image":"c"}`, "Idempotency-Key", "k"); answer.Status != http.StatusUnprocessableEntity {
		t.Errorf("got %d %s for other changes with the key, want 422", answer.Status, answer.Body)
	}
	for body, field := range map[string]string{
		`{"options":{}}`: "options", `{"image":"exec:/bin/sh"}`: "image", `{"image":"a b"}`: "image", `{"command":["\u0000"]}`: "command.0", `{"parameters":{"1":""}}`: "parameters.1",
		`{"parameters":{"LD_PRELOAD":"x"}}`: "parameters.LD_PRELOAD",
	} {
		if answer := post(t, stage, path, body); answer.Status != http.StatusBadRequest && answer.Status != http.StatusUnprocessableEntity || problem(t, answer).Field != field {
			t.Errorf("%s: got %d %s, want a problem of %s", body, answer.Status, answer.Body, field)
		}
	}
}

func TestProgramsOfTheHostNeedATokenAndALocalSystem(t *testing.T) {
	t.Parallel()
	bearer := []string{"Authorization", "Bearer " + token}
	for name, row := range map[string]struct {
		exec    bool
		image   string
		headers []string
		status  int
		code    string
	}{
		"with a token":             {true, "exec:/bin/true", bearer, 202, ""},
		"without a token":          {true, "exec:/bin/true", nil, 422, "RUNNER_NOT_ALLOWED"},
		"elsewhere":                {false, "exec:/bin/true", bearer, 422, "RUNNER_NOT_ALLOWED"},
		"an image without a token": {true, "image", nil, 202, ""},
		"a relative path":          {true, "exec:true", bearer, 400, "INVALID_REQUEST"},
		"a path that is not clean": {true, "exec:/bin/../bin/true", bearer, 400, "INVALID_REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage := setup(t, row.exec)
			answer := post(t, stage, "/v1/runs", `{"image":"`+row.image+`"}`, row.headers...)
			if answer.Status != row.status || row.code != "" && (problem(t, answer).Code != row.code || problem(t, answer).Field != "image") {
				t.Errorf("got %d %s, want %d %s for the image", answer.Status, answer.Body, row.status, row.code)
			}
			if row.status != 202 {
				return
			}
			task := accepted(t, answer, 202).TaskID
			post(t, stage, "/v1/tasks/"+task+"/cancel", "")
			retry := post(t, stage, "/v1/tasks/"+task+"/retry", "")
			if want := strings.HasPrefix(row.image, "exec:"); (retry.Status == 422) != want {
				t.Errorf("got %d for a retry without a token, want a refusal of exec: alone", retry.Status)
			}
		})
	}
}

func TestRefusedRuns(t *testing.T) {
	t.Parallel()
	stage := setup(t, true)
	large := base64.StdEncoding.EncodeToString(make([]byte, limit.Input+1))
	for name, row := range map[string]struct {
		body   string
		status int
		field  string
	}{
		"no object":              {`[]`, 400, ""},
		"no image":               {`{}`, 400, "image"},
		"an id":                  {`{"image":"a","id":"b"}`, 400, "id"},
		"a schedule":             {`{"image":"a","schedule":"@daily"}`, 400, "schedule"},
		"an unknown field":       {`{"image":"a","imag":"b"}`, 400, "imag"},
		"input that is a number": {`{"image":"a","input":1}`, 400, "input"},
		"input without base64":   {`{"image":"a","input":"a b"}`, 400, "input"},
		"input without padding":  {`{"image":"a","input":"YQ"}`, 400, "input"},
		"input twice":            {`{"image":"a","input":"YQ==","input":"YQ=="}`, 400, "input"},
		"a large input":          {`{"image":"a","input":"` + large + `"}`, 400, "input"},
		"a reserved variable":    {`{"image":"a","env":{"TASK_ENVELOPE":"b"}}`, 400, "env.TASK_ENVELOPE"},
		"other runs of no job":   {`{"image":"a","constraints":{"maxConcurrentRuns":1}}`, 422, "constraints.maxConcurrentRuns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := post(t, stage, "/v1/runs", row.body)
			if p := problem(t, answer); answer.Status != row.status || p.Field != row.field {
				t.Errorf("got %d for %q: %s, want %d for %q", answer.Status, p.Field, p.Detail, row.status, row.field)
			}
		})
	}
}

// TestSecretsOfAProgramAreMaskedInItsLog uses a short secret. It is masked in the log while the
// machine runs and in the stored log.
func TestSecretsOfAProgramAreMaskedInItsLog(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	stage.Secrets.Put(apitest.Tenant, "report-key", "s3cret")
	task := accepted(t, post(t, stage, "/v1/runs", `{"image":"a","env":{"KEY":{"secretRef":"report-key"},"LEVEL":"info"}}`), http.StatusAccepted).TaskID
	stage.Start(t, task)
	env := stage.Environment(t, task)
	if env["KEY"] != "s3cret" || env["LEVEL"] != "info" || env["SORTIE_COMPLETION"] != "exit" {
		t.Errorf("got KEY %q, LEVEL %q, SORTIE_COMPLETION %q, want the value, info and exit", env["KEY"], env["LEVEL"], env["SORTIE_COMPLETION"])
	}
	for _, name := range []string{"R2_ACCESS_KEY_ID", "CALLBACK_URL", "PI"} {
		if _, has := env[name]; has {
			t.Errorf("got %s for a program that ends by its exit code, want none", name)
		}
	}
	if envelope := stage.Envelope(t, task); envelope.Program == nil || !slices.Equal(envelope.Program.SecretVariables, []string{"KEY"}) {
		t.Errorf("got program %+v in the envelope, want KEY as a secret", envelope.Program)
	}
	stage.Write(t, task, "key s3cret, level info\n")
	for _, when := range []string{"running", "ended"} {
		log := stage.Call(t, http.MethodGet, "/v1/tasks/"+task+"/logs?attempt=1", "")
		if log.Body != "key [redacted], level info\n" {
			t.Errorf("%s: got log %d %q, want the secret masked", when, log.Status, log.Body)
		}
		if when == "running" {
			stage.LoseMachine(t, task)
		}
	}
	if strings.Contains(stage.Logs(), "s3cret") {
		t.Error("got the secret in the server's log")
	}
}

func TestDroppedLogIsNotStored(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	task := accepted(t, post(t, stage, "/v1/runs", `{"image":"a","logs":"drop"}`), http.StatusAccepted).TaskID
	stage.Start(t, task)
	stage.Write(t, task, "a line\n")
	stage.LoseMachine(t, task)
	if n := stage.Objects.Count(port.Accepted); n != 0 {
		t.Errorf("got %d stored logs, want none", n)
	}
}

// TestSentOutputIsDropped checks that the output of a job that keeps no logs is accepted, also
// with a cancel request, and is not stored.
func TestSentOutputIsDropped(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	task := accepted(t, post(t, stage, "/v1/runs", `{"image":"a","logs":"drop"}`), http.StatusAccepted).TaskID
	stage.Start(t, task)
	worker := []string{"Authorization", "Bearer " + stage.Envelope(t, task).TaskToken}
	send := func(sequence int) (answer contract.LogAnswer) {
		t.Helper()
		got := post(t, stage, "/v1/tasks/"+task+"/logs", fmt.Sprintf(`{"attempt":1,"stream":"stdout","sequence":%d,"data":"YQo="}`, sequence), worker...)
		if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || got.Status != http.StatusOK {
			t.Fatalf("got %d %s, want 200", got.Status, got.Body)
		}
		return answer
	}
	post(t, stage, "/v1/tasks/"+task+"/started", `{"attempt":1,"workerId":"w","sendsOutput":true}`, worker...)
	if send(1).ShouldCancel {
		t.Error("got a cancel without a request")
	}
	post(t, stage, "/v1/tasks/"+task+"/cancel", "")
	if !send(7).ShouldCancel {
		t.Error("got no cancel after a request")
	}
	stage.LoseMachine(t, task)
	if n := stage.Objects.Count(port.Accepted); n != 0 || stage.Run(t, task).RecordBytesLeft() {
		t.Errorf("got %d stored objects, want none", n)
	}
}

func TestFilterByKind(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	var jobs []string
	for range 3 {
		stage.Accept(t)
		jobs = append(jobs, accepted(t, post(t, stage, "/v1/runs", `{"image":"a"}`), http.StatusAccepted).TaskID)
		stage.Clock.Advance(time.Second)
	}
	slices.Reverse(jobs)
	var found []string
	path := "/v1/runs?kind=job&limit=2"
	for range 10 {
		var page contract.TaskList
		if err := json.Unmarshal([]byte(stage.Call(t, http.MethodGet, path, "").Body), &page); err != nil {
			t.Fatal(err)
		}
		for _, task := range page.Tasks {
			found = append(found, task.TaskID)
		}
		if page.NextCursor == "" {
			break
		}
		path = "/v1/runs?kind=job&limit=2&cursor=" + page.NextCursor
	}
	if !slices.Equal(found, jobs) {
		t.Errorf("got %q, want the runs of programs, newest first: %q", found, jobs)
	}
	for query, want := range map[string]int{"kind=program": 3, "trigger=request": 3, "kind=program&trigger=manual": 0} {
		var page contract.TaskList
		if err := json.Unmarshal([]byte(stage.Call(t, http.MethodGet, "/v1/runs?"+query, "").Body), &page); err != nil || len(page.Tasks) != want {
			t.Errorf("%s: got %d runs, %v, want %d", query, len(page.Tasks), err, want)
		}
	}
	if answer := stage.Call(t, http.MethodGet, "/v1/tasks?kind=other", ""); answer.Status != http.StatusBadRequest || problem(t, answer).Field != "kind" {
		t.Errorf("got %d %s, want 400 for the kind", answer.Status, answer.Body)
	}
}
