package command_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/contract"
)

func TestStatusSaysHowTheRunStands(t *testing.T) {
	t.Parallel()
	line := 3
	for name, row := range map[string]struct {
		status contract.Status
		flags  []string
		code   int
		want   []string
	}{
		"done": {done(), nil, 0, []string{"success", "Completed", served + ", 17 bytes", "2026-11-21 09:00:03 UTC"}},
		"in line": {
			contract.Status{TaskID: taskID, Status: "processing", State: "Pending", QueuePosition: &line},
			nil, 0,
			[]string{"processing", "before it in line  3"},
		},
		"failed":                 {failed(), nil, 0, []string{"404 Not Found", "WORKER_ERROR"}},
		"failed, and waited for": {failed(), []string{"--wait"}, 1, []string{"404 Not Found"}},
		"done, and waited for":   {done(), []string{"--wait"}, 0, []string{"Completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &api{status: row.status, stays: true}
			env := a.start(t)
			got := sortie(t, env, "", append([]string{"status", taskID}, row.flags...)...)
			if got.code != row.code {
				t.Errorf("ended with %+v", got)
			}
			for _, want := range row.want {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("it does not say %q:\n%s", want, got.stdout)
				}
			}
			asJSON := sortie(t, env, "", append([]string{"status", taskID, "--json"}, row.flags...)...)
			var status contract.Status
			if err := json.Unmarshal([]byte(asJSON.stdout), &status); err != nil || status.State != row.status.State {
				t.Errorf("as JSON: %+v, error %v", asJSON, err)
			}
		})
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	noOutput := done()
	noOutput.OutputKey = ""
	for name, row := range map[string]struct {
		status contract.Status
		code   int
	}{
		"an output":       {done(), 0},
		"none yet":        {contract.Status{TaskID: taskID, Status: "processing"}, 5},
		"none any more":   {failed(), 1},
		"none, and never": {noOutput, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := t.TempDir() + "/mine.xml"
			got := sortie(t, (&api{status: row.status, stays: true}).start(t), "", "download", taskID, "-o", file)
			if got.code != row.code {
				t.Fatalf("ended with %+v", got)
			}
			text, err := os.ReadFile(file)
			if saved := err == nil && string(text) == content; saved != (row.code == 0) {
				t.Errorf("saved %q, error %v", text, err)
			}
			if row.code == 0 && got.stdout != file+"\n" {
				t.Errorf("standard output has %q", got.stdout)
			}
		})
	}
}

func TestRunsAreListedByPage(t *testing.T) {
	t.Parallel()
	a := &api{}
	env := a.start(t)
	got := sortie(t, env, "", "runs", "--state", "Failed")
	if got.code != 0 || !strings.Contains(got.stdout, taskID) || !strings.Contains(got.stdout, "1 min 30 s  WORKER_LOST") {
		t.Errorf("ended with %+v", got)
	}
	if !strings.Contains(got.stderr, "--all") {
		t.Error("it does not say that there are more")
	}
	all := sortie(t, env, "", "runs", "--all", "--json")
	var list contract.TaskList
	if err := json.Unmarshal([]byte(all.stdout), &list); err != nil || len(list.Tasks) != 2 {
		t.Errorf("ended with %+v, error %v", all, err)
	}
	want := "GET /v1/tasks?limit=20&state=Failed GET /v1/tasks?limit=1000 GET /v1/tasks?cursor=next&limit=1000"
	if got := strings.Join(a.requests, " "); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	if wrong := sortie(t, env, "", "runs", "--limit", "0"); wrong.code != 2 {
		t.Errorf("a limit of 0 ended with %+v", wrong)
	}
}

func TestEventsAreATable(t *testing.T) {
	t.Parallel()
	env := (&api{events: life()}).start(t)
	got := sortie(t, env, "", "events", taskID)
	if got.code != 0 || strings.Count(got.stdout, "\n") != 4 || !strings.Contains(got.stdout, "2026-11-21 09:00:01.000  job.started") {
		t.Errorf("ended with %+v", got)
	}
}

func TestErrorsOfEveryCommandThatCalls(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, args := range []string{"status " + taskID, "status " + taskID + " --wait", "download " + taskID, "events " + taskID} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			gone := (&api{refuse: contract.Problem{Status: 404, Code: "NOT_FOUND", Detail: "it never was, or has expired"}}).start(t)
			if got := sortie(t, gone, "", strings.Fields(args)...); got.code != 4 || !strings.Contains(got.stderr, "never was") {
				t.Errorf("a task that is gone: %+v", got)
			}
			delete(gone, "SORTIE_TOKEN")
			if got := sortie(t, gone, "", strings.Fields(args)...); got.code != 6 || !strings.Contains(got.stderr, "SORTIE_TOKEN") {
				t.Errorf("without a token: %+v", got)
			}
		})
	}
	got := sortie(t, nil, "", "runs", "--url", closed.URL, "--json")
	var said struct {
		Error struct {
			ExitCode      int
			Message, Hint string
		}
	}
	if err := json.Unmarshal([]byte(got.stderr), &said); err != nil {
		t.Fatalf("standard error has %q: %v", got.stderr, err)
	}
	if got.code != 3 || said.Error.ExitCode != 3 || !strings.Contains(said.Error.Message, closed.URL) || !strings.Contains(said.Error.Hint, "sortie dev") {
		t.Errorf("no server: %+v", got)
	}
}

func TestCommandLinesThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"expotr", "export", "export mods", "export mods --pi", "export mods --max-depth x --pi " + pi, "status", "status a b",
		"runs --url ftp://x", "asl nonsense", "collection serve", "collection serve --sample --generate 3",
		"collection serve --generate 0", "collection serve --generate 3 --ill missing", "collection serve --generate 3 --ill x=1",
		"collection serve --ead /nowhere/at/all", "dev --image x", "dev --image x=", "dev --image x=/nowhere/at/all", "dev --image =y",
		"dev --data=", "dev --source example.org", "dev --source ftp://example.org", "dev --addr localhost",
		"dev --addr :0", "dev --addr 0.0.0.0:0", "dev --addr [::]:0",
		"asl validate /nowhere/at/all", "backup x --data /nowhere/at/all",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := sortie(t, nil, "", strings.Fields(args)...)
			if got.code != 2 || !strings.HasPrefix(got.stderr, "sortie: ") || got.stdout != "" {
				t.Errorf("ended with %+v", got)
			}
		})
	}
}

func TestWrongSettingsAreAllNamed(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SORTIE_TIME_LIMIT": "soon", "SORTIE_MAX_MACHINES": "many"}
	got := sortie(t, env, "", "dev", "--data", t.TempDir())
	if got.code != 2 || !strings.Contains(got.stderr, "SORTIE_TIME_LIMIT") || !strings.Contains(got.stderr, "SORTIE_MAX_MACHINES") {
		t.Errorf("ended with %+v", got)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"demo", "dev", "export", "status", "download", "runs", "events", "version", "backup", "collection serve", "asl validate", "asl run",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := sortie(t, nil, "", append(strings.Fields(args), "--help")...)
			if got.code != 0 || !strings.Contains(got.stdout, "Examples:\n") {
				t.Errorf("ended with %+v", got)
			}
		})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := sortie(t, nil, "", "completion", shell); got.code != 0 || got.stdout == "" {
			t.Errorf("completion for %s ended with %d", shell, got.code)
		}
	}
	if got := sortie(t, nil, "", "__complete", "runs", "--state", ""); !strings.Contains(got.stdout, "Terminating\n") {
		t.Errorf("states are not completed: %q", got.stdout)
	}
}
