package callback_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestStaleCallbackIsLogged checks WC-7.2: the log has the numbers of both attempts.
func TestStaleCallbackIsLogged(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	first := stage.Start(t, task)
	stage.LoseMachine(t, task)
	stage.Clock.Advance(time.Minute)
	stage.Start(t, task)
	before := len(stage.Logs())
	stage.Call(t, http.MethodPost, first, success(task, 5))
	got := stage.Logs()[before:]
	for _, want := range []string{"ATTEMPT_MISMATCH", "attempt 1", "attempt 2"} {
		if !strings.Contains(got, want) {
			t.Errorf("got log %s, want %q in it", got, want)
		}
	}
}
