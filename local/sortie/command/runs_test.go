package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/command"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestBulkCommandsPrintALineForEachRun(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: parts.Signer, Events: fake.NewEventKeys(nil)}, "")
	})
	env := map[string]string{"SORTIE_URL": stage.URL}
	failed := stage.Failure(t, "no manifest")
	stage.Clock.Advance(time.Second)
	pending := stage.Accept(t)
	run := func(args string, code int, want string) string {
		t.Helper()
		got := sortie(t, env, "", append([]string{"runs"}, strings.Fields(args)...)...)
		if got.code != code || !regexp.MustCompile("^(?s)"+want+"$").MatchString(got.stdout) {
			t.Fatalf("%s: got %+v, want %q and exit code %d", args, got, want, code)
		}
		return got.stdout
	}
	run("retry --kind export --dry-run", 0, failed+"  Failed  selected\n")
	run("retry --error MANIFEST --dry-run", 0, failed+"  Failed  selected\n")
	run("retry --kind program --trigger manual --dry-run", 0, "")
	first := run("retry --fault worker_error --idempotency-key k", 0, failed+"  Failed  created  export_mods_[0-9a-f_]+\n")
	again := run("retry --fault worker_error --idempotency-key k", 0, failed+"  Failed  existing  export_mods_[0-9a-f_]+\n")
	if again != strings.Replace(first, "created", "existing", 1) {
		t.Errorf("got %q for the same key, want the run of %q", again, first)
	}
	line := run("cancel --state pending --since 100000h --reason stop --json", 0, ".*\n.*\n")
	var shown contract.BulkRun
	if err := json.Unmarshal([]byte(strings.Split(line, "\n")[1]), &shown); err != nil || shown.TaskID != pending || shown.Result != "cancelled" {
		t.Errorf("got %+v from %s, %v, want the pending run", shown, line, err)
	}
	run("cancel --state pending", 0, "")
	if got := stage.Run(t, pending).Cancel; got == nil || got.Reason != "stop" {
		t.Errorf("got cancel request %+v, want the reason", got)
	}
	for _, wrong := range []string{"cancel", "cancel --dry-run", "retry --state none", "retry --kind none", "cancel --since -1s", "cancel --before now"} {
		run(wrong, 2, "")
	}
	run("cancel --state Failed", 2, "")
	again = sortie(t, env, "", "retry", failed, "--priority", "batch").stdout
	if r := stage.Run(t, strings.TrimSpace(again)); r.RetryOf != failed || r.Priority != "batch" {
		t.Errorf("got a retry of %s with the priority %q, want the changed one", r.RetryOf, r.Priority)
	}
	if got := sortie(t, env, "", "retry", failed, "--param", "A=1"); got.code == 0 || !strings.Contains(got.stderr, "only a program has environment variables") {
		t.Errorf("got %+v, want a refusal", got)
	}
}

// looks serves the runs and the pool of each poll. It fails the poll failed once. After the
// last poll it ends the command.
type looks struct {
	mu     sync.Mutex
	pages  []string
	failed int
	look   int
	end    context.CancelFunc
}

func (l *looks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.URL.Path {
	case "/v1/tasks":
		if l.look++; l.look == l.failed {
			l.look, l.failed = l.look-1, 0
			jsonOf(503, `{"status":503,"code":"UNAVAILABLE","detail":"the store is down"}`)(w)
			return
		}
		if l.look > len(l.pages) { // the command has printed the last poll
			l.look--
			l.end()
		}
		jsonOf(200, `{"tasks":[`+l.pages[l.look-1]+`]}`)(w)
	case "/v1/pools":
		held := 1
		if l.look == len(l.pages) {
			held = 0
		}
		jsonOf(200, fmt.Sprintf(`{"pools":[{"id":"default","limit":2,"held":%d,"queued":0}]}`, held))(w)
	case "/v1/runs/c":
		jsonOf(200, task("c", "Failed"))(w)
	default:
		jsonOf(404, `{"status":404,"code":"NOT_FOUND","detail":"unknown path"}`)(w)
	}
}

func task(id, state string) string {
	fault := ""
	switch state {
	case "Failed":
		fault = `,"fault":{"code":"PROGRAM_EXIT"}`
	case "Skipped":
		state, fault = "Completed", `,"skipped":true,"violations":[{"constraint":"maxConcurrentRuns"}]`
	}
	return fmt.Sprintf(`{"taskId":%q,"runId":%q,"state":%q,"attempt":1,"createdAt":"2026-11-21T09:00:00Z"%s}`, id, id, state, fault)
}

// watched runs "runs --watch" over four polls.
func watched(t *testing.T, size func() (int, int), args ...string) result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(&looks{end: cancel, failed: 2, pages: []string{
		task("b", "Failed") + "," + task("a", "Running"),
		task("c", "Pending") + "," + task("b", "Failed") + "," + task("a", "Completed"),
		task("b", "Failed"), // c has left the page
		task("d", "Skipped") + "," + task("b", "Failed"),
	}})
	t.Cleanup(server.Close)
	var stdout, stderr bytes.Buffer
	code := command.Main(ctx, cli.Program{
		Args: append([]string{"runs", "--watch"}, args...), Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Env: func(name string) (string, bool) { return server.URL, name == "SORTIE_URL" }, Clock: &hasty{now: begin},
		Random: func() uint64 { return 4 }, Executable: []string{os.Args[0]}, Size: size,
	})
	return result{code, stdout.String(), stderr.String()}
}

// hasty is a clock whose timers fire immediately.
type hasty struct {
	mu  sync.Mutex
	now time.Time
}

func (c *hasty) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *hasty) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	fired := make(chan time.Time, 1)
	fired <- c.now
	return fired, func() {}
}

func TestWatchPrintsChangesWithoutATerminal(t *testing.T) {
	t.Parallel()
	got := watched(t, nil)
	want := []string{"a  Running", "pool default  1 of 2 running, 0 queued", "a  Completed", "c  Pending", "c  Failed  PROGRAM_EXIT", "d  Completed  skipped: maxConcurrentRuns", "pool default  0 of 2 running, 0 queued"}
	var lines []string
	for line := range strings.Lines(got.stdout) {
		_, text, _ := strings.Cut(line, " UTC  ")
		lines = append(lines, strings.TrimSpace(text))
	}
	if got.code != 0 || strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got exit code %d and\n%s\nwant\n%s", got.code, strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(got.stderr, "the store is down; waiting for the server") {
		t.Errorf("got %q on standard error, want the failure of the server", got.stderr)
	}
}

func TestWatchPrintsObjects(t *testing.T) {
	t.Parallel()
	got := watched(t, nil, "--json")
	var seen []string
	for line := range strings.Lines(got.stdout) {
		var v struct {
			Run  *contract.Task
			Pool *struct{ ID string }
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || (v.Run == nil) == (v.Pool == nil) {
			t.Fatalf("got line %q, %v, want a run or a pool", line, err)
		}
		if v.Run != nil {
			seen = append(seen, v.Run.RunID+" "+v.Run.State)
		}
	}
	if want := "a Running,a Completed,c Pending,c Failed,d Completed"; strings.Join(seen, ",") != want || got.stderr != "" {
		t.Errorf("got %v and %q, want %s", seen, got.stderr, want)
	}
}

// TestWatchDrawsOnATerminal shrinks the terminal between two refreshes.
func TestWatchDrawsOnATerminal(t *testing.T) {
	t.Parallel()
	columns, rows := 60, 9
	got := watched(t, func() (int, int) {
		defer func() { columns, rows = 30, 4 }()
		return columns, rows
	})
	const open, home, closing = "\x1b[?1049h\x1b[?25l", "\x1b[H", "\x1b[?25h\x1b[?1049l"
	pages := strings.Split(strings.TrimSuffix(got.stdout, closing), home)
	if got.code != 0 || pages[0] != open || !strings.HasSuffix(got.stdout, closing) || len(pages) < 4 {
		t.Fatalf("got %+v, want pages on the second screen", got)
	}
	for i, page := range pages[1:] {
		lines := strings.Split(strings.TrimSuffix(page, "\x1b[J"), "\r\n")
		if len(lines) > 9 || i > 0 && len(lines) > 4 {
			t.Errorf("page %d: got %d lines, want what fits the terminal", i, len(lines))
		}
		for _, line := range lines {
			text := strings.TrimSuffix(line, "\x1b[K")
			if width := runewidth.StringWidth(text); text == line || strings.Contains(text, "\x1b") || i > 0 && width > 29 {
				t.Errorf("page %d: got line %q of %d columns, want at most 29 and its end cleared", i, line, width)
			}
		}
	}
	for _, want := range []string{"pool default: 1 of 2 running, 0 queued", "the store is down"} {
		if !strings.Contains(strings.ReplaceAll(got.stdout, "…", ""), want[:17]) {
			t.Errorf("got %q, want %q", got.stdout, want)
		}
	}
}

func TestRedeliverRefusesWhatHasNotFailed(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route {
		return tasks.RedeliveryRoutes(s.Queries, s.Redeliveries)
	})
	env := map[string]string{"SORTIE_URL": stage.URL}
	failed := stage.Failure(t, "no manifest")
	if got := sortie(t, env, "", "runs", "redeliver", failed); got.code != 0 || got.stdout != failed+": no notification has failed\n" {
		t.Errorf("got %+v, want nothing to send", got)
	}
	for args, want := range map[string]string{
		failed + " --action onFailure": "onFailure: no notification of the run has failed",
		"none":                         "no such",
		"":                             "accepts 1 arg",
	} {
		got := sortie(t, env, "", append([]string{"runs", "redeliver"}, strings.Fields(args)...)...)
		if got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: got %+v, want %q", args, got, want)
		}
	}
}
