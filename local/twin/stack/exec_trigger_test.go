package stack_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/secretfile"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// exports is a job of the export contract that triggers another job. Every caller may run it.
const exports = `{"export": {"format": "mods", "pi": "01K9XVBAQZF9EHDRXGBEADTZYY"},
	"actions": {"onSuccess": {"type": "trigger_job", "parameters": {"jobId": "%s"}}}}`

// TestTriggeredRunHasTheRightsOfBoth triggers a job with a program of the host. That job is
// created after the one that triggers it. Both the author of the triggering job and the caller
// who starts its run need the scope exec.
func TestTriggeredRunHasTheRightsOfBoth(t *testing.T) {
	t.Parallel()
	g := start(t, served{Play: "success"})
	owner := *g.Client
	owner.Token = g.stack.Token()
	put := func(c *outside.Client, id, body string) {
		t.Helper()
		if answer := c.Call(http.MethodPut, "/v1/jobs/"+id, body); answer.Status >= 300 {
			t.Fatalf("job %s: got %d %s, want it stored", id, answer.Status, answer.Body)
		}
	}
	// triggers runs a job. It returns the trigger failure in its event, and the number of runs
	// of the triggered job.
	triggers := func(c *outside.Client, id, triggered string) (failure string, runs int) {
		t.Helper()
		answer := c.Call(http.MethodPost, "/v1/jobs/"+id+"/runs", "{}")
		if answer.Status != http.StatusAccepted {
			t.Fatalf("job %s: got %d %s, want 202", id, answer.Status, answer.Body)
		}
		task := outside.Decode[contract.RunAccepted](t, answer.Body).TaskID
		g.End(task)
		await.Until(t, "end of the action", func() (done bool) {
			for _, e := range outside.Get[contract.TaskEvents](g.Client, "/v1/tasks/"+task+"/events?limit=1000").Events {
				if e.Type == "job.action_failed" || e.Type == "job.action_executed" {
					failure, done = e.Message, true
				}
			}
			return done
		})
		return failure, len(outside.Get[contract.JobRuns](g.Client, "/v1/jobs/"+triggered+"/runs").Runs)
	}
	mark := filepath.Join(t.TempDir(), "mark")
	put(g.Client, "early", fmt.Sprintf(exports, "secret"))
	put(g.Client, "between", fmt.Sprintf(exports, "owned"))
	put(&owner, "owned", fmt.Sprintf(exports, "secret"))
	put(&owner, "secret", `{"image": "exec:/usr/bin/touch", "command": ["`+mark+`"]}`)
	for _, row := range []struct {
		name string
		c    *outside.Client
		id   string
	}{
		{"stored and started without a token", g.Client, "early"},
		{"stored without a token", &owner, "early"},
		{"started without a token", g.Client, "owned"},
	} {
		if failure, runs := triggers(row.c, row.id, "secret"); !strings.Contains(failure, "scope exec") || runs != 0 {
			t.Errorf("%s: got %q and %d runs, want a refusal", row.name, failure, runs)
		}
	}
	if failure, _ := triggers(g.Client, "between", "owned"); strings.Contains(failure, "scope exec") {
		t.Errorf("a trigger of an export: got %q, want it done", failure)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program has run")
	}
	// The owner stores the same definition, so the owner's rights apply.
	put(&owner, "early", fmt.Sprintf(exports, "secret"))
	for i, id := range []string{"early", "owned"} {
		if failure, runs := triggers(&owner, id, "secret"); runs != i+1 {
			t.Errorf("%s of the owner: got %q and %d runs, want %d", id, failure, runs, i+1)
		}
	}
}

// TestScheduleHasTheRightsOfItsJob stores a schedule of an image. After a restart the image is
// bound to a program.
func TestScheduleHasTheRightsOfItsJob(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	body := `{"image": "later:latest", "schedule": "@every 1s", "retryConfig": {"maxRetries": 0}}`
	for name, owned := range map[string]bool{"of a stranger": false, "of the owner": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(data, strings.ReplaceAll(name, " ", "-"))
			g := start(t, served{Data: data})
			if owned {
				g.Token = g.stack.Token()
			}
			if answer := g.Call(http.MethodPut, "/v1/jobs/later", body); answer.Status != http.StatusCreated {
				t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
			}
			if err := g.stack.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			again := start(t, served{Data: data, Images: map[string][]string{"later:latest": {"/bin/true"}}})
			await.Until(t, "such run", func() bool {
				for _, r := range outside.Get[contract.JobRuns](again.Client, "/v1/jobs/later/runs").Runs {
					switch {
					case !owned && r.Missed != nil && r.Missed.Reason == "missing_scope", owned && r.State == "Completed" && !r.Skipped:
						return true
					case !owned && r.State == "Running":
						t.Fatalf("got %+v, want a skipped run", r)
					}
				}
				return false
			})
		})
	}
}

// TestWrapperDoesNotHaveTheVariablesOfAJob reads the environment of the wrapper process.
func TestWrapperDoesNotHaveTheVariablesOfAJob(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc of Linux")
	}
	g := start(t, served{})
	g.Token = g.stack.Token()
	answer := g.Call(http.MethodPost, "/v1/runs", `{"image": "exec:/bin/sh", "retryConfig": {"maxRetries": 0},
		"command": ["-c", "echo program $MINE; tr '\\0' ' ' < /proc/$PPID/environ"],
		"env": {"MINE": "of-the-job", "PATH": "/of-the-job:/usr/bin:/bin", "HTTP_PROXY": "http://of-the-job", "TMPDIR": "/of-the-job"}}`)
	task := outside.Decode[contract.RunAccepted](t, answer.Body).TaskID
	if status := g.End(task); status.Status != contract.StatusSuccess {
		t.Fatalf("got %+v, want a success", status)
	}
	log := string(g.Call(http.MethodGet, "/v1/tasks/"+task+"/logs", "").Body)
	own, _ := strings.CutPrefix(log, "program of-the-job\n")
	if own == log || strings.Contains(own, "of-the-job") || !strings.Contains(own, "PATH=") {
		t.Errorf("got %q, want the variables in the program alone", log)
	}
}

// TestEndedRunLeavesNoSecretOnTheDisk searches the folder of the machines for the input and
// output of an ended run.
func TestEndedRunLeavesNoSecretOnTheDisk(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-of-the-report"
	data := t.TempDir()
	g := start(t, served{Data: data})
	g.Token = g.stack.Token()
	if err := secretfile.Folder(filepath.Join(data, stack.SecretsFolder)).Put("default", "report-key", secret); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]string{"success": "exit 0", "failure": "exit 3", "retry": "test -e " + filepath.Join(t.TempDir(), "mark") + " || { exit 7; }"} {
		answer := g.Call(http.MethodPost, "/v1/runs", `{"image": "exec:/bin/sh", "command": ["-c", "echo raw-$API_KEY; `+end+`"],
			"env": {"API_KEY": {"secretRef": "report-key"}}, "retryConfig": {"maxRetries": 1, "initialDelay": "1s"}}`)
		task := outside.Decode[contract.RunAccepted](t, answer.Body).TaskID
		g.End(task)
		if log := string(g.Call(http.MethodGet, "/v1/tasks/"+task+"/logs", "").Body); !strings.Contains(log, "raw-") || strings.Contains(log, secret) {
			t.Errorf("%s: got log %q, want one with the secret masked", name, log)
		}
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	var left []string
	for range 1200 {
		left = nil
		err := filepath.WalkDir(filepath.Join(data, "machines"), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return nil //nolint:nilerr // it was removed meanwhile
			}
			text, _ := os.ReadFile(path)
			if strings.Contains(string(text), secret) || strings.Contains(string(text), "taskToken") || strings.HasPrefix(entry.Name(), "output.") {
				left = append(left, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		<-poll.C
	}
	t.Errorf("got %q ten seconds after the runs, want no file with a secret or an output", left)
}
