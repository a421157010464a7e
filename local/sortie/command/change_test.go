package command_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// responses is a server with a response for each path.
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
		_, _ = w.Write([]byte(text))
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

func TestLogIsFollowedToTheEndOfItsAttempt(t *testing.T) {
	t.Parallel()
	const path = "GET /v1/tasks/" + taskID + "/logs"
	var asked atomic.Int64
	first := func(w http.ResponseWriter) {
		if asked.Add(1) == 1 {
			jsonOf(404, `{"status":404,"code":"NOT_FOUND","detail":"no log yet"}`)(w)
			return
		}
		logOf("one\n", "2", "false")(w)
	}
	env := responses(t, map[string]func(http.ResponseWriter){
		path:                    first,
		"GET /status/" + taskID: jsonOf(200, `{"task_id":"`+taskID+`","status":"processing","state":"Running"}`),
		path + "?attempt=2":     logOf("one\n[3 bytes are cut out here]\ntwo\n", "2", "true"),
	})
	if got := sortie(t, env, "", "logs", "-f", taskID); got.code != 0 || got.stdout != "one\n[3 bytes are cut out here]\ntwo\n" {
		t.Errorf("got %+v", got)
	}
}
