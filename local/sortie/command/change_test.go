package command_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// says is a server that answers each path with what the test says.
func says(t *testing.T, answers map[string]func(w http.ResponseWriter)) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.RequestURI()]
		if !ok {
			http.NotFound(w, r)
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

func TestCancelSaysWhatHappensNext(t *testing.T) {
	t.Parallel()
	const path = "POST /v1/tasks/" + taskID + "/cancel"
	env := says(t, map[string]func(http.ResponseWriter){path: jsonOf(202,
		`{"taskId":"`+taskID+`","state":"Running","result":"requested","message":"the worker is told"}`)})
	if got := sortie(t, env, "", "cancel", taskID, "--reason", "enough"); got.code != 0 || !strings.Contains(got.stdout, "requested: the worker is told") {
		t.Errorf("ended with %+v", got)
	}
	if got := sortie(t, env, "", "cancel", taskID, "--json"); got.code != 0 || !strings.Contains(got.stdout, `"requested"`) {
		t.Errorf("ended with %+v", got)
	}
	late := says(t, map[string]func(http.ResponseWriter){path: jsonOf(200,
		`{"taskId":"`+taskID+`","state":"Completed","result":"too_late","message":"the task had ended before"}`)})
	if got := sortie(t, late, "", "cancel", taskID); got.code != 1 || !strings.Contains(got.stderr, "too late") {
		t.Errorf("ended with %+v", got)
	}
}

func TestRetryTellsTheNewTask(t *testing.T) {
	t.Parallel()
	env := says(t, map[string]func(http.ResponseWriter){"POST /v1/tasks/" + taskID + "/retry": jsonOf(202,
		`{"taskId":"export_mods_2_00000000","retryOf":"`+taskID+`","state":"Pending"}`)})
	if got := sortie(t, env, "", "retry", taskID); got.code != 0 || got.stdout != "export_mods_2_00000000\n" {
		t.Errorf("ended with %+v", got)
	}
}

func TestLogsAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	const path = "GET /v1/tasks/" + taskID + "/logs"
	env := says(t, map[string]func(http.ResponseWriter){path: logOf("a\xff\nb", "2", "false"), path + "?attempt=1": logOf("one", "1", "true")})
	if got := sortie(t, env, "", "logs", taskID); got.code != 0 || got.stdout != "a\xff\nb" {
		t.Errorf("ended with %+v", got)
	}
	if got := sortie(t, env, "", "logs", taskID, "--attempt", "1"); got.code != 0 || got.stdout != "one" {
		t.Errorf("ended with %+v", got)
	}
	if got := sortie(t, env, "", "logs", "none"); got.code != 4 {
		t.Errorf("an unknown task ended with %+v", got)
	}
}

func TestALogIsFollowedToTheEndOfItsAttempt(t *testing.T) {
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
	env := says(t, map[string]func(http.ResponseWriter){
		path:                    first,
		"GET /status/" + taskID: jsonOf(200, `{"task_id":"`+taskID+`","status":"processing","state":"Running"}`),
		path + "?attempt=2":     logOf("one\n[3 bytes are cut out here]\ntwo\n", "2", "true"),
	})
	if got := sortie(t, env, "", "logs", "-f", taskID); got.code != 0 || got.stdout != "one\n[3 bytes are cut out here]\ntwo\n" {
		t.Errorf("ended with %+v", got)
	}
}
