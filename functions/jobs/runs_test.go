package jobs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const stored = `{"image": "app", "command": ["x"], "env": {"LEVEL": "info", "KEY": {"secretRef": "key"}}, "input": "hello",
	"constraints": {"maxConcurrentRuns": 1}, "retryConfig": {"maxRetries": 4}}`

func TestManualRun(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 201)
	accepted, header := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", `{"parameters": {"LEVEL": "debug", "MORE": "1"}}`, 202, "Idempotency-Key", "k")
	if header.Get("Location") != "/v1/runs/"+accepted.RunID || accepted.State != "Pending" || !strings.HasPrefix(accepted.TaskID, "job_") {
		t.Errorf("got %+v at %s, want a pending run", accepted, header.Get("Location"))
	}
	r := stage.Run(t, accepted.TaskID)
	env := r.Work.Program.Env
	if r.JobID != "nightly" || r.JobVersion != 1 || r.Trigger != run.TriggerManual || r.Work.Program.Input == nil || r.Work.Program.Input.Size != 5 ||
		env["LEVEL"].Value != "debug" || env["MORE"].Value != "1" || env["KEY"].SecretRef != "key" || r.Policy.Retry.MaxAttempts != 5 || r.Constraints.MaxConcurrentRuns != 1 {
		t.Errorf("got %+v with program %+v, want the run of the job with its parameters", r, r.Work.Program)
	}
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "other"}`, 200)
	again, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", `{"parameters": {"LEVEL": "debug", "MORE": "1"}}`, 200, "Idempotency-Key", "k")
	if again.RunID != accepted.RunID {
		t.Errorf("got run %s for the same key, want %s", again.RunID, accepted.RunID)
	}
	p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", `{"parameters": {"LEVEL": "warn"}}`, 422, "Idempotency-Key", "k")
	if p.Code != "IDEMPOTENCY_MISMATCH" {
		t.Errorf("got code %s, want IDEMPOTENCY_MISMATCH", p.Code)
	}
	if j, _ := apitest.Decoded[map[string]any](t, stage, "GET", path, "", 200); j["env"] != nil {
		t.Errorf("got env %v, want the parameters in the run alone", j["env"])
	}
}

// TestRetryOfARunOfAJob checks that a retry has the version and the parameters of its run, even
// if the job has changed.
func TestRetryOfARunOfAJob(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 201)
	first, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", `{"parameters": {"LEVEL": "debug"}}`, 202)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "other"}`, 200)
	apitest.Decoded[contract.CancelAnswer](t, stage, "POST", "/v1/runs/"+first.RunID+"/cancel", "", 200)
	again, _ := apitest.Decoded[contract.RetryAccepted](t, stage, "POST", "/v1/runs/"+first.RunID+"/retry", "", 202)
	r := stage.Run(t, again.TaskID)
	if r.RetryOf != first.TaskID || r.JobID != "nightly" || r.JobVersion != 1 || r.Trigger != run.TriggerManual || r.Parameters["LEVEL"] != "debug" ||
		r.Work.Image != "app" || r.Work.Program.Env["LEVEL"].Value != "debug" || r.Work.Program.Input.Size != 5 || r.Constraints.MaxConcurrentRuns != 1 {
		t.Errorf("got %+v with program %+v, want the first run again", r, r.Work.Program)
	}
	listed, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs", "", 200)
	if len(listed.Runs) != 2 || listed.Runs[0].RetryOf != first.TaskID {
		t.Errorf("got runs %+v, want the retry and its run", listed.Runs)
	}
	apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/runs/"+first.RunID+"/retry", `{"image": "other"}`, 400)
	changed, _ := apitest.Decoded[contract.RetryAccepted](t, stage, "POST", "/v1/runs/"+first.RunID+"/retry", `{"parameters": {"LEVEL": "info", "X": "1"}, "priority": "batch"}`, 202)
	c := stage.Run(t, changed.TaskID)
	if want := map[string]string{"LEVEL": "info", "X": "1"}; !maps.Equal(c.Parameters, want) || c.Work.Program.Env["LEVEL"].Value != "info" || c.Override.Priority != "batch" {
		t.Errorf("got %+v with program %+v, want the changes", c, c.Work.Program)
	}
}

func TestScheduledRunIsAFiring(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 201)
	at := stage.Clock.Now().Add(24 * time.Hour).Truncate(time.Second)
	body := fmt.Sprintf(`{"scheduledAt": %q}`, at.Format(time.RFC3339))
	first, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", body, 202)
	if want := "nightly:" + at.UTC().Format("20060102T150405Z"); first.RunID != want || first.State != "PreRun" {
		t.Errorf("got %+v, want run %s in PreRun", first, want)
	}
	local := fmt.Sprintf(`{"scheduledAt": %q}`, at.In(time.FixedZone("", 3600)).Format(time.RFC3339))
	for _, same := range []string{body, local} {
		if again, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", same, 200, "Idempotency-Key", "k"); again != first {
			t.Errorf("got %+v, want %+v", again, first)
		}
	}
	other := strings.Replace(body, "{", `{"parameters": {"LEVEL": "debug"}, `, 1)
	apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", other, 422)
	for name, wrong := range map[string]time.Time{
		"past": at.Add(-24 * time.Hour), "31 days": at.Add(30 * 24 * time.Hour), "fraction": at.Add(time.Millisecond),
	} {
		body := fmt.Sprintf(`{"scheduledAt": %q}`, wrong.Format(time.RFC3339Nano))
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", body, 400); p.Field != "scheduledAt" {
			t.Errorf("%s: got field %q, want scheduledAt", name, p.Field)
		}
	}
}

func TestRunsOfAnExportJob(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	j, _ := apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"export": {"format": "dc", "pi": "01K9XVBAQZF9EHDRXGBEADTZYY"}, "schedule": "@daily"}`, 201)
	list, _ := apitest.Decoded[contract.JobList](t, stage, "GET", "/v1/jobs", "", 200)
	if j.Export == nil || j.Export.Format != "dc" || len(list.Jobs) != 1 || list.Jobs[0].Export != "dc" {
		t.Errorf("got %+v and list %+v, want the export", j, list)
	}
	p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", `{"parameters": {"A": "1"}}`, 422)
	if p.Field != "parameters" {
		t.Errorf("got %+v, want a problem of parameters", p)
	}
	accepted, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", "", 202)
	shown, _ := apitest.Decoded[contract.Task](t, stage, "GET", "/v1/runs/"+accepted.RunID, "", 200)
	if shown.Kind != spec.KindExport || shown.Format != "dc" || shown.JobID != "nightly" || shown.JobVersion != 1 || shown.Program != nil {
		t.Errorf("got %+v, want an export of the job", shown)
	}
}

func TestRejectedRuns(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 201)
	for body, field := range map[string]string{
		`{"parameters": {"A-B": "x"}}`: "parameters.A-B", `{"parameters": {"A": 1}}`: "parameters.A", `{"env": {}}`: "env",
		`{"scheduledAt": "tomorrow"}`: "scheduledAt", `{"parameters": {"A": "\u0000"}}`: "parameters.A",
	} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", body, 400); p.Field != field {
			t.Errorf("%s: got field %q, want %s", body, p.Field, field)
		}
	}
	apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/jobs/none/runs", "", 404)
	apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", "", 400, "Idempotency-Key", strings.Repeat("k", 256))
}

func TestRunsOfAJob(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 201)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", "/v1/jobs/other", stored, 201)
	if none, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs", "", 200); len(none.Runs) != 0 {
		t.Errorf("got %v, want no runs", none.Runs)
	}
	var created []string
	for range 3 {
		stage.Clock.Advance(time.Second)
		apitest.Decoded[contract.RunAccepted](t, stage, "POST", "/v1/jobs/other/runs", "", 202)
		accepted, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", "", 202)
		created = append([]string{accepted.RunID}, created...)
	}
	apitest.Decoded[struct{}](t, stage, http.MethodDelete, path, "", 204)
	var found []string
	for cursor := ""; ; {
		list, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs?limit=2&cursor="+cursor, "", 200)
		for _, r := range list.Runs {
			found = append(found, r.RunID)
		}
		if cursor = list.NextCursor; cursor == "" {
			break
		}
	}
	if strings.Join(found, " ") != strings.Join(created, " ") {
		t.Errorf("got runs %v, want %v", found, created)
	}
	apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/jobs/none/runs", "", 404)
}

// TestWaitingRunGetsTheNewestDefinition changes a job while a firing waits for its time.
func TestWaitingRunGetsTheNewestDefinition(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 201)
	at := stage.Clock.Now().Add(time.Hour).Truncate(time.Second)
	body := fmt.Sprintf(`{"scheduledAt": %q, "parameters": {"LEVEL": "debug"}}`, at.Format(time.RFC3339))
	accepted, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", body, 202)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "newest", "env": {"LEVEL": "warn", "NEW": "1"}, "input": "other"}`, 200)
	stage.Clock.Advance(time.Hour)
	stage.Admit(t, accepted.TaskID)
	r := stage.Run(t, accepted.TaskID)
	env := r.Work.Program.Env
	if r.Work.Image != "newest" || r.JobVersion != 2 || env["LEVEL"].Value != "debug" || env["NEW"].Value != "1" || r.Input() == nil || r.Input().Text != "other" {
		t.Errorf("got %s in version %d with program %+v, want the newest definition and the parameters", r.Work.Image, r.JobVersion, r.Work.Program)
	}
}

func TestLaunchHasTheInputAndResources(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "app", "input": "hello", "resources": {"cpus": 2, "memoryMB": 512}}`, 201)
	accepted, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", "", 202)
	stage.Start(t, accepted.TaskID)
	if got := stage.Objects.Content(port.Accepted, limit.InputKey(apitest.Tenant, accepted.TaskID)); got != "hello" {
		t.Errorf("got input %q in the bucket after the launch, want hello", got)
	}
	if size := stage.Envelope(t, accepted.TaskID).Resources; size.CPUMillicores != 2000 || size.MemoryBytes != 512<<20 {
		t.Errorf("got resources %+v in the envelope, want those of the job", size)
	}
	if program := stage.Envelope(t, accepted.TaskID).Program; program == nil || program.Input == nil || program.Input.Size != 5 {
		t.Errorf("got program %+v in the envelope, want an input of 5 bytes", program)
	}
}

const asksInputs = `{"image": "app", "command": ["{{inputs.day}}", "{{scheduledAt}}"], "env": {"TEXT": "<{{inputs.text}}>"},
	"inputs": {"day": {"type": "date", "required": true}, "text": {"default": "none"}, "count": {"type": "integer", "choices": [1, 2]}}}`

// TestInputsOfARun starts, repeats and retries a run with inputs, and looks at what its program gets.
func TestInputsOfARun(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, asksInputs, 201)
	const hostile = `"a\n\"'$(id){{runId}}{{inputs.day}}<b>"`
	body := `{"inputs": {"day": "2027-03-01", "count": "2", "text": ` + hostile + `}}`
	first, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", body, 202, "Idempotency-Key", "k")
	apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", body, 200, "Idempotency-Key", "k")
	apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", `{"inputs": {"day": "2027-03-02"}}`, 422, "Idempotency-Key", "k")
	const text = "a\n\"'$(id){{runId}}{{inputs.day}}<b>"
	stage.Start(t, first.TaskID)
	at := stage.Run(t, first.TaskID).CreatedAt.Format(time.RFC3339)
	env, envelope := stage.Environment(t, first.TaskID), stage.Envelope(t, first.TaskID)
	for name, want := range map[string]string{
		"SORTIE_INPUT_day": "2027-03-01", "SORTIE_INPUT_count": "2", "SORTIE_INPUT_text": text, "TEXT": "<" + text + ">", "SORTIE_SCHEDULED_AT": at,
	} {
		if env[name] != want {
			t.Errorf("got %s %q, want %q", name, env[name], want)
		}
	}
	var all map[string]any
	if err := json.Unmarshal([]byte(env["SORTIE_INPUTS"]), &all); err != nil || all["text"] != text || all["count"] != 2.0 || len(all) != 3 {
		t.Errorf("got %s, want the inputs as JSON", env["SORTIE_INPUTS"])
	}
	if string(envelope.Inputs["count"]) != "2" || envelope.ScheduledAt.Format(time.RFC3339) != at {
		t.Errorf("got inputs %s and time %s in the envelope", envelope.Inputs, envelope.ScheduledAt)
	}
	shown, _ := apitest.Decoded[contract.Task](t, stage, "GET", "/v1/runs/"+first.RunID, "", 200)
	if string(shown.Inputs["count"]) != "2" || shown.Program.Command[0] != "{{inputs.day}}" {
		t.Errorf("got inputs %s and command %q", shown.Inputs, shown.Program.Command)
	}
	apitest.Decoded[contract.CancelAnswer](t, stage, "POST", "/v1/runs/"+first.RunID+"/cancel", "", 202)
	stage.LoseMachine(t, first.TaskID)
	stage.Settle(t, first.TaskID)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "other"}`, 200)
	for changes, want := range map[string]string{"": "2027-03-01", `{"inputs": {"day": "2027-04-01"}}`: "2027-04-01"} {
		again, _ := apitest.Decoded[contract.RetryAccepted](t, stage, "POST", "/v1/runs/"+first.RunID+"/retry", changes, 202)
		if r := stage.Run(t, again.TaskID); r.Inputs["day"].Text() != want || r.Inputs["text"].Text() != text || r.Scheduled().Format(time.RFC3339) != at {
			t.Errorf("%s: got inputs %q at %s, want the day %s at the time of the first run", changes, r.Inputs, r.Scheduled(), want)
		}
	}
	p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/runs/"+first.RunID+"/retry", `{"inputs": {"count": 3}}`, 400)
	if p.Field != "inputs.count" || !strings.Contains(p.Detail, "want one of 1, 2") {
		t.Errorf("got %+v, want the input named", p)
	}
}

// TestInputAttacks sends values that must be refused, with the name of the field.
func TestInputAttacks(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, asksInputs, 201)
	const day = `"day": "2027-03-01"`
	for name, row := range map[string]struct {
		body, field string
		status      int
	}{
		"none":                {``, "inputs.day", 400},
		"no object":           {`{"inputs": []}`, "inputs", 400},
		"null":                {`{"inputs": {"day": null}}`, "inputs.day", 400},
		"an object":           {`{"inputs": {"day": {"$ref": "x"}}}`, "inputs.day", 400},
		"a list":              {`{"inputs": {"day": ["2027-03-01"]}}`, "inputs.day", 400},
		"twice":               {`{"inputs": {"day": "2027-03-01", "day": "2027-03-02"}}`, "", 400},
		"a NUL":               {`{"inputs": {` + day + `, "text": "a\u0000b"}}`, "inputs.text", 400},
		"huge":                {`{"inputs": {` + day + `, "text": "` + strings.Repeat("x", 17<<10) + `"}}`, "inputs", 400},
		"larger":              {`{"inputs": {` + day + `, "text": "` + strings.Repeat("x", 3<<20) + `"}}`, "", 413},
		"no choice":           {`{"inputs": {` + day + `, "count": 3}}`, "inputs.count", 400},
		"another's name":      {`{"inputs": {` + day + `, "PATH": "/evil"}}`, "inputs.PATH", 400},
		"a variable's name":   {`{"inputs": {` + day + `, "LD_PRELOAD=x": "y"}}`, "", 400},
		"a reserved variable": {`{"inputs": {` + day + `}, "parameters": {"SORTIE_INPUT_day": "x"}}`, "parameters.SORTIE_INPUT_day", 400},
	} {
		answer := stage.Call(t, "POST", path+"/runs", row.body, "Content-Type", "application/json")
		var p contract.Problem
		if err := json.Unmarshal([]byte(answer.Body), &p); err != nil || answer.Status != row.status || row.field != "" && p.Field != row.field {
			t.Errorf("%s: got %d %.300s, want %d with the field %s", name, answer.Status, answer.Body, row.status, row.field)
		}
	}
	if list, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs", "", 200); len(list.Runs) != 0 {
		t.Errorf("got %d runs of refused requests", len(list.Runs))
	}
}
