package command_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestExportSendsOnlyTheOptionsThatWereGiven(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		flags string
		want  string
	}{
		"none": {"", `{"pi":"` + pi + `"}`},
		"all": {
			"--recursive --max-depth 3 --parallel-batch-size 7 --include-ocr=false --cheimarros-mode skip --batch-id b1",
			`{"pi":"` + pi + `","options":{"recursive":true,"maxDepth":3,"parallelBatchSize":7,"includeOcr":false,"cheimarrosMode":"skip"},"batch_id":"b1"}`,
		},
		"a given default":                   {"--include-ocr", `{"pi":"` + pi + `","options":{"includeOcr":true}}`},
		"a given zero":                      {"--max-depth 0", `{"pi":"` + pi + `","options":{"maxDepth":0}}`},
		"a mode that only the server knows": {"--cheimarros-mode some", `{"pi":"` + pi + `","options":{"cheimarrosMode":"some"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &api{}
			got := sortie(t, a.start(t), "", append([]string{"export", "mods", "--pi", pi, "--no-wait"}, strings.Fields(row.flags)...)...)
			if got.code != 0 || got.stdout != taskID+"\n" {
				t.Errorf("got %+v", got)
			}
			if a.body != row.want {
				t.Errorf("got the request %s, want %s", a.body, row.want)
			}
			if a.key == "" {
				t.Error("got no idempotency key")
			}
		})
	}
}

func TestExportWaitsAndSaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &api{status: done(), events: life()}
	got := sortie(t, a.start(t), "", "export", "mods", "--pi", pi, "-o", dir, "--idempotency-key", "mine")
	file := filepath.Join(dir, pi+"-collection.mods.xml")
	if got.code != 0 || got.stdout != taskID+"\n"+file+"\n" {
		t.Errorf("got %+v", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != content {
		t.Errorf("got the file %q, error %v", text, err)
	}
	if a.key != "mine" {
		t.Errorf("got the key %q, want mine", a.key)
	}
	for _, want := range []string{"Pending", "Running", "Completed", "72 entities, 1 failed, 17 bytes in 2.9 s, at most 30 MB"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("got\n%s\nwant %q", got.stderr, want)
		}
	}
}

func TestExportAsJSONIsOneObject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &api{status: done(), events: life()}
	got := sortie(t, a.start(t), "", "export", "mods", "--pi", pi, "-o", dir+"/x.xml", "--json")
	var object struct {
		TaskID string `json:"task_id"`
		State  string `json:"state"`
		File   string `json:"file"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &object); err != nil || got.code != 0 {
		t.Fatalf("got %+v, error %v", got, err)
	}
	if object.TaskID != taskID || object.State != "Completed" || object.File != dir+"/x.xml" {
		t.Errorf("got %+v", object)
	}
	if want := `{"task_id":"` + taskID + `"}` + "\n"; got.stderr != want {
		t.Errorf("got %q on standard error, want %q", got.stderr, want)
	}
}

func TestExportToStandardOutputPrintsOnlyTheFile(t *testing.T) {
	t.Parallel()
	a := &api{status: done(), events: life()}
	got := sortie(t, a.start(t), "", "export", "mods", "--pi", pi, "-o", "-")
	if got.code != 0 || got.stdout != content {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(got.stderr, taskID) {
		t.Errorf("got %q on standard error, want the task id", got.stderr)
	}
}

func TestExportExitsWithTheOutcome(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		api  *api
		args string
		code int
		says string
	}{
		"cancelled":     {&api{status: cancelled()}, "", 7, "the run " + taskID + " was cancelled"},
		"failed":        {&api{status: failed()}, "", 1, "the run failed: 404 Not Found (WORKER_ERROR, USER_CODE)"},
		"not in time":   {&api{stays: true, status: contract.Status{TaskID: taskID, Status: "processing"}}, "--timeout 1ms", 5, "sortie status " + taskID + " --wait"},
		"wrong request": {&api{refuse: contract.Problem{Status: 400, Code: "INVALID_REQUEST", Field: "options.maxDepth", Detail: "the depth is 0 to 100"}}, "", 2, "options.maxDepth: the depth is 0 to 100"},
		"no such format": {
			&api{refuse: contract.Problem{Status: 404, Code: "NOT_FOUND", Detail: "there is no such export format"}}, "", 2, "no such export format",
		},
		"another body": {&api{refuse: contract.Problem{Status: 422, Code: "IDEMPOTENCY_MISMATCH", Detail: "used for another request"}}, "", 2, "another request"},
		"forbidden":    {&api{refuse: contract.Problem{Status: 403, Code: "FORBIDDEN", Detail: "not yours"}}, "", 6, "SORTIE_TOKEN"},
		"broken server": {
			&api{refuse: contract.Problem{Status: 500, Code: "INTERNAL", Detail: "something went wrong", CorrelationID: "c-1"}}, "", 3, "c-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := row.api.start(t)
			args := append([]string{"export", "mods", "--pi", pi, "-o", t.TempDir()}, strings.Fields(row.args)...)
			got := sortie(t, env, "", args...)
			if got.code != row.code || !strings.Contains(got.stderr, row.says) {
				t.Errorf("got %d and\n%s\nwant %d and %q", got.code, got.stderr, row.code, row.says)
			}
			if strings.Contains(got.stderr, ".go:") || strings.Contains(got.stderr, "s3cret") {
				t.Errorf("got a token or a source position:\n%s", got.stderr)
			}
		})
	}
}

func TestExportWithoutOutput(t *testing.T) {
	t.Parallel()
	status := done()
	status.OutputKey, status.OutputFileName, status.OutputFileSize, status.Metrics = "", "", nil, nil
	got := sortie(t, (&api{status: status}).start(t), "", "export", "mods", "--pi", pi)
	if got.code != 0 || got.stdout != taskID+"\n" || !strings.Contains(got.stderr, "no output") {
		t.Errorf("got %+v", got)
	}
}

func TestInterruptedExportNamesTheNextCommand(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &api{stays: true, status: contract.Status{TaskID: taskID, Status: "processing"}}
	env := a.start(t)
	got := sortieUntil(ctx, env, "", "status", taskID, "--wait")
	if got.code != 130 || !strings.Contains(got.stderr, "sortie status "+taskID+" --wait") {
		t.Errorf("got %+v", got)
	}
}
