package command_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// responses starts a server with one response per path and returns the environment of a
// command.
func responses(t *testing.T, answers map[string]func(w http.ResponseWriter)) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.RequestURI()]
		if !ok {
			jsonOf(404, `{"status":404,"code":"NOT_FOUND","detail":"Task not found"}`)(w)
			return
		}
		answer(w)
	}))
	t.Cleanup(server.Close)
	return map[string]string{"SORTIE_URL": server.URL}
}

func jsonOf(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func logOf(text, attempt, ended string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("X-Attempt", attempt)
		w.Header().Set("X-Log-Ended", ended)
		n, err := strconv.Atoi(attempt)
		lines := json.NewEncoder(w)
		if err == nil && text != "" {
			err = lines.Encode(contract.LogLine{Attempt: n, Stream: "stdout", Data: []byte(text), Next: int64(len(text))})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

func TestCancelShowsTheNextStep(t *testing.T) {
	t.Parallel()
	const path = "POST /v1/tasks/" + taskID + "/cancel"
	env := responses(t, map[string]func(http.ResponseWriter){path: jsonOf(202,
		`{"taskId":"`+taskID+`","state":"Running","result":"requested","message":"the worker is informed"}`)})
	if got := sortie(t, env, "", "cancel", taskID, "--reason", "enough"); got.code != 0 || !strings.Contains(got.stdout, "requested: the worker is informed") {
		t.Errorf("got %+v", got)
	}
	if got := sortie(t, env, "", "cancel", taskID, "--json"); got.code != 0 || !strings.Contains(got.stdout, `"requested"`) {
		t.Errorf("got %+v", got)
	}
	late := responses(t, map[string]func(http.ResponseWriter){path: jsonOf(200,
		`{"taskId":"`+taskID+`","state":"Completed","result":"too_late","message":"the task had ended before"}`)})
	if got := sortie(t, late, "", "cancel", taskID); got.code != 1 || !strings.Contains(got.stderr, "too late") {
		t.Errorf("got %+v", got)
	}
}

func TestRetryPrintsTheNewTask(t *testing.T) {
	t.Parallel()
	env := responses(t, map[string]func(http.ResponseWriter){"POST /v1/tasks/" + taskID + "/retry": jsonOf(202,
		`{"taskId":"export_mods_2_00000000","retryOf":"`+taskID+`","state":"Pending"}`)})
	if got := sortie(t, env, "", "retry", taskID); got.code != 0 || got.stdout != "export_mods_2_00000000\n" {
		t.Errorf("got %+v", got)
	}
}

func TestLogsAreEscaped(t *testing.T) {
	t.Parallel()
	const path = "GET /v1/tasks/" + taskID + "/logs"
	env := responses(t, map[string]func(http.ResponseWriter){path: logOf("a\xff\n\x1b[2Jb\u202e", "2", "false"), path + "?attempt=1": logOf("one", "1", "true")})
	if got := sortie(t, env, "", "logs", taskID); got.code != 0 || got.stdout != `a\xff`+"\n"+`\x1b[2Jb\u202e` {
		t.Errorf("got %+v", got)
	}
	if got := sortie(t, env, "", "logs", taskID, "--attempt", "1"); got.code != 0 || got.stdout != "one" {
		t.Errorf("got %+v", got)
	}
	if got := sortie(t, env, "", "logs", "none"); got.code != 4 {
		t.Errorf("unknown task: got %+v, want exit code 4", got)
	}
}

// TestLogIsFollowed follows a log over streams that end early. Each starts at the position
// after the last line. It ends with the run.
func TestLogIsFollowed(t *testing.T) {
	t.Parallel()
	const path = "GET /v1/tasks/" + taskID + "/logs"
	var asked []string
	lines := func(name, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			asked = append(asked, name)
			_, _ = w.Write([]byte(text))
		}
	}
	env := responses(t, map[string]func(http.ResponseWriter){
		path + "?follow=true": lines("first", `{"attempt":1,"stream":"stdout","data":"b25lCsM=","next":5}
{"attempt":1,"stream":"stdout","data":"qQo=","next":7}
{"attempt":1,"stream":"std`),
		path + "?attempt=1&follow=true&offset=7": lines("second", `{"attempt":2,"stream":"stderr","data":"dHdvCg==","next":4}
{"attempt":2,"stream":"stdout","cut":3,"next":7}
`),
		path + "?attempt=2&follow=true&offset=7": lines("third", `{"attempt":2,"next":7,"ended":true}
`),
	})
	got := sortie(t, env, "", "logs", "-f", taskID)
	if got.code != 0 || got.stdout != "one\né\ntwo\n\n[3 bytes are cut out here]\n" || strings.Join(asked, " ") != "first second third" {
		t.Errorf("got %+v with the streams %q", got, asked)
	}
	if got := sortie(t, env, "", "logs", taskID, "--stream", "both"); got.code != 2 || !strings.Contains(got.stderr, "--stream") {
		t.Errorf("got %+v, want a usage error", got)
	}
}
