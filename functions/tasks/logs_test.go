package tasks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func wantLog(t *testing.T, stage *apitest.Stage, path, text, attempt, ended string) {
	t.Helper()
	answer := stage.Call(t, http.MethodGet, path, "")
	if answer.Status != http.StatusOK || answer.Body != text || answer.Header.Get("X-Attempt") != attempt || answer.Header.Get("X-Log-Ended") != ended {
		t.Errorf("%s: got %d %.80q, attempt %s, ended %s, want 200 %.80q, attempt %s, ended %s", path, answer.Status, answer.Body, answer.Header.Get("X-Attempt"), answer.Header.Get("X-Log-Ended"), text, attempt, ended)
	}
}

func wantNoLog(t *testing.T, stage *apitest.Stage, path string) {
	t.Helper()
	if answer := stage.Call(t, http.MethodGet, path, ""); answer.Status != http.StatusNotFound {
		t.Errorf("%s: got %d %s, want 404", path, answer.Status, answer.Body)
	}
}

// shortened requires a truncated log: both ends and the size of the omitted
// part.
func shortened(t *testing.T, whole string) string {
	t.Helper()
	short := string(logs.Shorten([]byte(whole), limit.Log))
	begin, end, cut := strings.Cut(short, "\n[")
	if !cut || len(short) > 1<<20 || !strings.HasPrefix(whole, begin) || !strings.HasSuffix(whole, end[strings.Index(end, "\n")+1:]) ||
		!strings.Contains(end, "bytes are cut out here]") {
		t.Fatalf("got %d bytes of %d: %.40q, want both ends and the length of the cut", len(short), len(whole), short)
	}
	return short
}

// TestMachineLogIsStored reads the log of each attempt while the machine runs,
// after it is gone, and until the record is deleted.
func TestMachineLogIsStored(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	path := "/v1/tasks/" + task + "/logs"
	wantNoLog(t, stage, path)
	stage.Start(t, task)
	wantNoLog(t, stage, path)
	stage.Write(t, task, "reading\x00\xff\n")
	wantLog(t, stage, path, "reading\x00\xff\n", "1", "false")
	stage.LoseMachine(t, task)
	wantLog(t, stage, path, "reading\x00\xff\n", "1", "true")
	stage.Clock.Advance(time.Minute)
	stage.Start(t, task)
	whole := strings.Repeat("a", 1<<20) + "the end"
	stage.Write(t, task, whole)
	wantLog(t, stage, path+"?attempt=1", "reading\x00\xff\n", "1", "true")
	long := shortened(t, whole)
	wantLog(t, stage, path, long, "2", "false")
	stage.LoseMachine(t, task)
	stage.Clock.Advance(time.Minute)
	stage.Start(t, task)
	stage.LoseMachine(t, task)
	wantLog(t, stage, path+"?attempt=2", long, "2", "true")
	wantNoLog(t, stage, path) // the third attempt has no log
	wantNoLog(t, stage, path+"?attempt=4")
	if n := stage.Objects.Count(port.Accepted); n != 2 {
		t.Errorf("got %d stored logs, want 2", n)
	}
	stage.Clock.Advance(8 * 24 * time.Hour)
	if err := stage.System.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	wantNoLog(t, stage, path+"?attempt=1")
	if n := stage.Objects.Count(port.Accepted); n != 0 {
		t.Errorf("got %d logs of a deleted task, want none", n)
	}
}

// TestUploadedLogIsUsed checks a runner that provides no logs.
func TestUploadedLogIsUsed(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return append(routes(parts.Signer)(s), callback.Routes(s.Workers, s.Intake)...)
	})
	task := stage.Accept(t)
	stage.Start(t, task)
	envelope := stage.Envelope(t, task)
	answer := stage.Call(t, http.MethodPost, "/v1/tasks/"+task+"/started", `{"attempt":1,"workerId":"w"}`, "Authorization", "Bearer "+envelope.TaskToken)
	if answer.Status != http.StatusOK {
		t.Fatalf("started: got %d %s, want 200", answer.Status, answer.Body)
	}
	path := "/v1/tasks/" + task + "/logs"
	wantNoLog(t, stage, path)
	whole := strings.Repeat("x", 2<<20) + "!"
	stage.Objects.Store(port.Uploads, envelope.Log.Key, "text/plain", whole)
	cut := shortened(t, whole)
	wantLog(t, stage, path, cut, "1", "false")
	answer = stage.Call(t, http.MethodPost, "/v1/tasks/"+task+"/completed", `{"attempt":1,"workerId":"w","outcome":"SUCCEEDED"}`, "Authorization", "Bearer "+envelope.TaskToken)
	if answer.Status != http.StatusOK {
		t.Fatalf("completed: got %d %s, want 200", answer.Status, answer.Body)
	}
	stage.Settle(t, task)
	if state := stage.Run(t, task).State; state != run.Completed {
		t.Fatalf("got state %s, want %s", state, run.Completed)
	}
	wantLog(t, stage, path, cut, "1", "true")
	if n := stage.Objects.Count(port.Uploads); n != 0 {
		t.Errorf("got %d uploads, want none", n)
	}
}

// TestLogThatIsNoTextIsServedAsBytes reads logs in other encodings, and a part of a text that
// starts and ends within a character.
func TestLogThatIsNoTextIsServedAsBytes(t *testing.T) {
	t.Parallel()
	const text, binary = "text/plain; charset=utf-8", "application/octet-stream"
	for name, row := range map[string]struct{ log, query, want string }{
		"text":                       {"für alle\n", "", text},
		"empty":                      {"", "", text},
		"latin 1":                    {"f\xfcr alle\n", "", binary},
		"bytes":                      {"\x00\xff\xfe", "", binary},
		"end within a character":     {"f\xc3", "", text},
		"start within a character":   {"fü", "?offset=2", text},
		"continuation in the middle": {"a\xbcb", "", binary},
	} {
		parts := apitest.NewParts(t)
		stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
			return append(routes(parts.Signer)(s), callback.Routes(s.Workers, s.Intake)...)
		})
		task := stage.Accept(t)
		stage.Start(t, task)
		envelope := stage.Envelope(t, task)
		stage.Call(t, http.MethodPost, "/v1/tasks/"+task+"/started", `{"attempt":1,"workerId":"w"}`, "Authorization", "Bearer "+envelope.TaskToken)
		stage.Objects.Store(port.Uploads, envelope.Log.Key, "text/plain", row.log)
		answer := stage.Call(t, http.MethodGet, "/v1/tasks/"+task+"/logs"+row.query, "")
		if got := answer.Header.Get("Content-Type"); answer.Status != http.StatusOK || got != row.want {
			t.Errorf("%s: got %d with the type %q, want %q", name, answer.Status, got, row.want)
		}
		if row.query == "" && answer.Body != row.log {
			t.Errorf("%s: got %q, want the bytes of the log", name, answer.Body)
		}
	}
}
