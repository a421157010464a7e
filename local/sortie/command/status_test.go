package command_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestStatusShowsTheRun(t *testing.T) {
	t.Parallel()
	position := 3
	for name, row := range map[string]struct {
		status contract.Status
		flags  []string
		code   int
		want   []string
	}{
		"done": {done(), nil, 0, []string{"success", "Completed", served + ", 17 bytes", "2026-11-21 09:00:03 UTC"}},
		"queued": {
			contract.Status{TaskID: taskID, Status: "processing", State: "Pending", QueuePosition: &position},
			nil, 0,
			[]string{"processing", "queued before it  3"},
		},
		"in the pool of a fallback": {
			contract.Status{
				TaskID: taskID, Status: "processing", State: "Running", Pool: "spare",
				FellBack: []contract.FellBack{{Attempt: 1, From: "default", To: "spare", Reason: "capacity", Message: "no room", At: begin}},
			},
			nil, 0,
			[]string{"pool      spare\n", "fallback  from pool default to pool spare at 2026-11-21 09:00:00 UTC (capacity): no room\n"},
		},
		"skipped": {
			contract.Status{
				TaskID: taskID, Status: "error", State: "Completed", CompletedAt: begin, Skipped: true, ErrorCode: "SKIPPED",
				Error:    "skipped: maxConcurrentRuns: 1 of 1 slots are held",
				Progress: &contract.Progress{Message: "skipped: maxConcurrentRuns: 1 of 1 slots are held"},
			},
			nil, 0,
			[]string{"error       skipped: maxConcurrentRuns: 1 of 1 slots are held\n", "error code  SKIPPED\n"},
		},
		"skipped, and waited for":   {skipped(), []string{"--wait"}, 8, []string{"Completed", "SKIPPED"}},
		"failed":                    {failed(), nil, 0, []string{"404 Not Found", "WORKER_ERROR"}},
		"failed, and waited for":    {failed(), []string{"--wait"}, 1, []string{"404 Not Found"}},
		"cancelled, and waited for": {cancelled(), []string{"--wait"}, 7, []string{"Cancelled"}},
		"done, and waited for":      {done(), []string{"--wait"}, 0, []string{"Completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &api{status: row.status, stays: true}
			env := a.start(t)
			got := sortie(t, env, "", append([]string{"status", taskID}, row.flags...)...)
			if got.code != row.code {
				t.Errorf("got %+v", got)
			}
			for _, want := range row.want {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("got\n%s\nwant %q", got.stdout, want)
				}
			}
			asJSON := sortie(t, env, "", append([]string{"status", taskID, "--json"}, row.flags...)...)
			var status contract.Status
			if err := json.Unmarshal([]byte(asJSON.stdout), &status); err != nil || status.State != row.status.State {
				t.Errorf("--json: got %+v, error %v", asJSON, err)
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
		"still running":   {contract.Status{TaskID: taskID, Status: "processing"}, 5},
		"a failed run":    {failed(), 1},
		"a cancelled run": {cancelled(), 7},
		"no output":       {noOutput, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := t.TempDir() + "/mine.xml"
			got := sortie(t, (&api{status: row.status, stays: true}).start(t), "", "download", taskID, "-o", file)
			if got.code != row.code {
				t.Fatalf("got %+v", got)
			}
			text, err := os.ReadFile(file)
			if saved := err == nil && string(text) == content; saved != (row.code == 0) {
				t.Errorf("got the file %q, error %v", text, err)
			}
			if row.code == 0 && got.stdout != file+"\n" {
				t.Errorf("got %q on standard output", got.stdout)
			}
		})
	}
}

func TestRunsReadsPages(t *testing.T) {
	t.Parallel()
	a := &api{}
	env := a.start(t)
	got := sortie(t, env, "", "runs", "--state", "failed", "--limit", "2")
	if got.code != 0 || strings.Count(got.stdout, taskID) != 2 || !strings.Contains(got.stderr, "--all") {
		t.Errorf("got %+v, want the task and a note that there are more", got)
	}
	all := sortie(t, env, "", "runs", "--all", "--json")
	var list contract.TaskList
	if err := json.Unmarshal([]byte(all.stdout), &list); err != nil || len(list.Tasks) != 2 {
		t.Errorf("got %+v, error %v", all, err)
	}
	want := "GET /v1/tasks?limit=2&state=Failed GET /v1/tasks?cursor=next&limit=1&state=Failed GET /v1/tasks?limit=1000 GET /v1/tasks?cursor=next&limit=1000"
	if got := strings.Join(a.requests, " "); got != want {
		t.Errorf("got requests %s, want %s", got, want)
	}
	if wrong := sortie(t, env, "", "runs", "--limit", "0"); wrong.code != 2 {
		t.Errorf("--limit 0: got %+v, want exit code 2", wrong)
	}
}

func TestEventsIsATable(t *testing.T) {
	t.Parallel()
	env := (&api{events: life()}).start(t)
	got := sortie(t, env, "", "events", taskID)
	if got.code != 0 || strings.Count(got.stdout, "\n") != 4 || !strings.Contains(got.stdout, "2026-11-21 09:00:01.000  job.started") {
		t.Errorf("got %+v", got)
	}
}

func TestErrorsOfClientCommands(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, args := range []string{"status " + taskID, "status " + taskID + " --wait", "download " + taskID, "events " + taskID, "cancel " + taskID, "retry " + taskID, "logs " + taskID} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			gone := (&api{refuse: contract.Problem{Status: 404, Code: "NOT_FOUND", Detail: "it never was, or has expired"}}).start(t)
			if got := sortie(t, gone, "", strings.Fields(args)...); got.code != 4 || !strings.Contains(got.stderr, "never was") {
				t.Errorf("unknown task: got %+v", got)
			}
			delete(gone, "SORTIE_TOKEN")
			if got := sortie(t, gone, "", strings.Fields(args)...); got.code != 6 || !strings.Contains(got.stderr, "SORTIE_TOKEN") {
				t.Errorf("without a token: got %+v", got)
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
		t.Fatalf("got %q on standard error: %v", got.stderr, err)
	}
	if got.code != 3 || said.Error.ExitCode != 3 || !strings.Contains(said.Error.Message, closed.URL) || !strings.Contains(said.Error.Hint, "sortie dev") {
		t.Errorf("without a server: got %+v", got)
	}
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"expotr", "export", "export mods", "export mods --pi", "export mods --max-depth x --pi " + pi, "status", "status a b",
		"runs --url ftp://x", "asl nonsense", "collection serve", "collection serve --sample --generate 3",
		"collection serve --generate 0", "collection serve --generate 3 --fault missing", "collection serve --generate 3 --fault x=1",
		"collection serve --ead /nowhere/at/all", "dev --image x", "dev --image x=", "dev --image x=/nowhere/at/all", "dev --image =y",
		"dev --data=", "dev --source example.org", "dev --source ftp://example.org", "dev --addr localhost",
		"dev --addr :0", "dev --addr 0.0.0.0:0", "dev --addr [::]:0",
		"asl validate /nowhere/at/all", "backup x --data /nowhere/at/all", "worker check --only nonsense -- true", "worker check --wrong -- true",
		"worker check -- /nowhere/at/all", "dev --image x='sh ./nowhere.sh'", "dev --log-format xml", "demo --log-format xml", "runs --state x",
		"runs --format x", "runs --since -1h", "logs x --since soon", "logs x --tail -2", "secrets put", "secrets put fyl --stage prod", "secrets put fly",
		"keys rotat", "version x",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := sortie(t, nil, "", strings.Fields(args)...)
			if got.code != 2 || !strings.HasPrefix(got.stderr, "sortie: ") || got.stdout != "" {
				t.Errorf("got %+v, want exit code 2 and an error", got)
			}
			for _, raw := range []string{"arg(s)", "strconv", "parse ", "flag group", "if any flags", "pflag"} {
				if strings.Contains(got.stderr, raw) {
					t.Errorf("got the words %q of a library:\n%s", raw, got.stderr)
				}
			}
		})
	}
}

func TestWrongSettingsAreAllNamed(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SORTIE_TIME_LIMIT": "soon", "SORTIE_MAX_MACHINES": "many"}
	got := sortie(t, env, "", "dev", "--data", t.TempDir())
	if got.code != 2 || !strings.Contains(got.stderr, "SORTIE_TIME_LIMIT") || !strings.Contains(got.stderr, "SORTIE_MAX_MACHINES") {
		t.Errorf("got %+v", got)
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"demo", "dev", "export", "status", "download", "runs", "events", "version", "backup", "inspect", "collection serve", "asl validate", "asl run",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := sortie(t, nil, "", append(strings.Fields(args), "--help")...)
			if got.code != 0 || !strings.Contains(got.stdout, "Examples:\n") {
				t.Errorf("got %+v", got)
			}
		})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := sortie(t, nil, "", "completion", shell); got.code != 0 || got.stdout == "" {
			t.Errorf("completion %s: got exit code %d", shell, got.code)
		}
	}
	if got := sortie(t, nil, "", "__complete", "runs", "--state", ""); !strings.Contains(got.stdout, "Terminating\n") {
		t.Errorf("--state: got completions %q, want the states", got.stdout)
	}
}
