package deployed_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// served is the result of one event: the answer, which is empty if the process ended before it;
// the log; and the time from the start to the first request for an event.
type served struct {
	answer string
	logs   string
	init   time.Duration
	state  *os.ProcessState
}

// serve runs the built function with the variables of env against a fake of Lambda's Runtime
// API, which has one event. It stops the function after its answer. If look is not nil, serve
// calls it between the answer and the stop.
func serve(t *testing.T, name, event string, env []string, look func()) served {
	t.Helper()
	l := &lambda{event: event, started: time.Now(), next: make(chan time.Time, 1), answer: make(chan string, 1), stop: make(chan struct{})}
	api := httptest.NewServer(l)
	t.Cleanup(api.Close)
	program := filepath.Join(build(t), functions(t)[name], "bootstrap")
	limit, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // stops a function that hangs
	defer cancel()
	cmd := exec.CommandContext(limit, program)
	var logs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &logs, &logs
	cmd.Env = append(slices.Clone(env), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"), "AWS_REGION=eu-central-1",
		"AWS_LAMBDA_FUNCTION_VERSION=3", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the error is that of the kill below
		close(ended)
	}()
	var made served
	select {
	case made.answer = <-l.answer:
	case <-ended:
	}
	if look != nil {
		look()
	}
	close(l.stop)
	_ = cmd.Process.Kill() // the function serves until it is killed
	<-ended
	select {
	case at := <-l.next:
		made.init = at.Sub(l.started)
	default:
	}
	made.logs, made.state = logs.String(), cmd.ProcessState
	return made
}

// lambda is the Runtime API with a single event.
type lambda struct {
	event   string
	started time.Time
	next    chan time.Time
	answer  chan string
	stop    chan struct{}
	once    sync.Once
}

// ServeHTTP returns the event to the first request for one, and stores the answer.
func (l *lambda) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/invocation/next") {
		text, _ := io.ReadAll(r.Body)
		select {
		case l.answer <- string(text):
		case <-l.stop: // the test has ended
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	first := false
	l.once.Do(func() { first = true })
	if !first {
		<-l.stop
		return
	}
	l.next <- time.Now()
	w.Header().Set("Lambda-Runtime-Aws-Request-Id", "request-1")
	w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli()))
	_, _ = io.WriteString(w, l.event)
}
