package status_test

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/status"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func setup(t *testing.T, change ...func(*apitest.Settings)) *apitest.Stage {
	t.Helper()
	return apitest.New(t, apitest.NewParts(t), func(svc *app.System) []httpkit.Route {
		return status.Routes(svc.Queries, status.MaxWait)
	}, change...)
}

func get(t *testing.T, stage *apitest.Stage, task string, headers ...string) (contract.Status, apitest.Answer) {
	t.Helper()
	answer := stage.Call(t, http.MethodGet, "/status/"+task, "", headers...)
	var s contract.Status
	if answer.Status == http.StatusOK {
		if err := json.Unmarshal([]byte(answer.Body), &s); err != nil {
			t.Fatal(err)
		}
	}
	return s, answer
}

func TestStatusThroughoutARun(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	steps := []struct {
		name, state string
		attempt     int
		do          func()
	}{
		{"accepted", "Pending", 0, func() {}},
		{"running", "Running", 1, func() { stage.Start(t, task) }},
		{"retrying", "Retrying", 1, func() { stage.LoseMachine(t, task) }},
	}
	for _, step := range steps {
		step.do()
		s, answer := get(t, stage, task)
		if s.Status != "processing" || s.State != step.state || s.Attempt != step.attempt {
			t.Errorf("%s: got status %s in state %s, attempt %d, want processing in %s, attempt %d", step.name, s.Status, s.State, s.Attempt, step.state, step.attempt)
		}
		if s.Progress == nil || s.Progress.Message == "" || s.Error != "" {
			t.Errorf("%s: got progress %+v, error %q, want a message and no error", step.name, s.Progress, s.Error)
		}
		if answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got no Retry-After, want one", step.name)
		}
	}
}

func TestSuccess(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Success(t, "a.xml", "application/xml", "<a/>")
	s, answer := get(t, stage, task)
	if s.Status != "success" || s.State != "Completed" || s.PI != apitest.PI || s.OutputKey != "exports/"+task+"/output.xml" ||
		s.OutputFileName != "a.xml" || *s.OutputFileSize != 4 || *s.Progress.Percent != 100 {
		t.Errorf("got status %s, want a success with a.xml of 4 bytes", answer.Body)
	}
	if !s.OutputExpiresAt.Equal(apitest.Began.Add(24*time.Hour)) || !s.ExpiresAt.Equal(apitest.Began.Add(7*24*time.Hour)) {
		t.Errorf("got expiry %v and %v, want 24 h and 7 days after the start", s.OutputExpiresAt, s.ExpiresAt)
	}
	if answer.Header.Get("Retry-After") != "" {
		t.Error("got Retry-After for a terminal state, want none")
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	s, answer := get(t, stage, stage.Failure(t, "Failed to fetch manifest"))
	if s.Status != "error" || s.Error != "Failed to fetch manifest" || s.ErrorCode != "WORKER_ERROR" || s.ErrorCategory != "USER_CODE" || s.OutputKey != "" {
		t.Errorf("got status %s, want error WORKER_ERROR without an output", answer.Body)
	}
}

func TestQueuePosition(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	var tasks []string
	for range 4 {
		task := stage.Accept(t)
		stage.Admit(t, task)
		stage.Clock.Advance(time.Second)
		tasks = append(tasks, task)
	}
	for i, want := range map[int]int{2: 0, 3: 1} {
		if s, answer := get(t, stage, tasks[i]); s.QueuePosition == nil || *s.QueuePosition != want || !strings.Contains(s.Progress.Message, "queue") {
			t.Errorf("task %d: got %s, want queue position %d", i, answer.Body, want)
		}
	}
	if s, _ := get(t, stage, tasks[0]); s.QueuePosition != nil {
		t.Errorf("got queue position %d for a task with a machine, want none", *s.QueuePosition)
	}
}

func TestUnchangedStatusIsNotSentAgain(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	_, first := get(t, stage, task)
	_, again := get(t, stage, task, "If-None-Match", first.Header.Get("ETag"))
	if again.Status != http.StatusNotModified || again.Body != "" {
		t.Errorf("got %d %s, want 304 without a body", again.Status, again.Body)
	}
	stage.Admit(t, task)
	if _, changed := get(t, stage, task, "If-None-Match", first.Header.Get("ETag")); changed.Status != http.StatusOK {
		t.Errorf("got %d after a change, want 200", changed.Status)
	}
}

func TestUnknownOrExpiredTask(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Success(t, "a.xml", "", "x")
	stage.Clock.Advance(8 * 24 * time.Hour)
	for _, id := range []string{task, "export_mods_1_00000000", "%00", strings.Repeat("x", 3000), "a%2Fb"} {
		if _, answer := get(t, stage, id); answer.Status != http.StatusNotFound || !strings.Contains(answer.Body, "Task not found") {
			t.Errorf("task %.40q: got %d %s, want 404 Task not found", id, answer.Status, answer.Body)
		}
	}
}

func TestBadWait(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	for _, query := range []string{"wait=21", "wait=-1", "wait=1.5", "wait=x", "wait=", "wait=+1", "wait=01", "wait=1&wait=2", "watch=1", "wait=1;wait=2"} {
		answer := stage.Call(t, http.MethodGet, "/status/"+task+"?"+query, "")
		if answer.Status != http.StatusBadRequest {
			t.Errorf("?%s: got %d, want 400", query, answer.Status)
		}
	}
}

func TestWaitReturnsAtAChange(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	states := make(chan string)
	go func() {
		s, _ := get(t, stage, task+"?wait=20")
		states <- s.State
	}()
	awaitPoll(stage)
	stage.Admit(t, task)
	if state := <-states; state != "ContainerCreating" {
		t.Errorf("got status %s, want ContainerCreating", state)
	}
}

func TestWaitTimesOut(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(svc *app.System) []httpkit.Route { return status.Routes(svc.Queries, 5*time.Second) })
	task := stage.Accept(t)
	states := make(chan string)
	go func() {
		s, _ := get(t, stage, task+"?wait=20")
		states <- s.State
	}()
	awaitPoll(stage)
	stage.Clock.Advance(5 * time.Second)
	if state := <-states; state != "Pending" {
		t.Errorf("got state %s, want Pending", state)
	}
}

// reads is a store that counts the reads of each run.
type reads struct {
	port.Store
	mu   sync.Mutex
	runs map[string]int
}

func (r *reads) count(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[id]++
}

func (r *reads) of(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[id]
}

// Find implements port.Store.
func (r *reads) Find(ctx context.Context, tenant, id string) (run.Run, error) {
	r.count(id)
	return r.Store.Find(ctx, tenant, id)
}

// Load implements port.Store.
func (r *reads) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	r.count(ref.ID)
	return r.Store.Load(ctx, ref)
}

// TestWaitReadsTheRunOnce checks that a waiting request reads its run once. No commit causes a
// further read, because a commit that changes the run passes the run on.
func TestWaitReadsTheRunOnce(t *testing.T) {
	t.Parallel()
	counted := &reads{runs: map[string]int{}}
	parts := apitest.NewParts(t)
	counted.Store, parts.Store = parts.Store, counted
	stage := apitest.New(t, parts, func(svc *app.System) []httpkit.Route { return status.Routes(svc.Queries, status.MaxWait) })
	task, other := stage.Accept(t), stage.Accept(t)
	stage.Start(t, task)
	before := counted.of(task)
	states := make(chan string)
	go func() {
		s, _ := get(t, stage, task+"?wait=20")
		states <- s.State
	}()
	awaitPoll(stage)
	wait := func() int { return counted.of(task) - before }
	if got := wait(); got != 1 {
		t.Errorf("got %d reads before the wait, want 1", got)
	}
	stage.Start(t, other)
	// The reads by the commits themselves are the same for both runs.
	from := counted.of(other)
	commit := func(task string) {
		stage.Supervise(t, task)
		stage.Report(t, task, contract.Callback{TaskID: task, Status: contract.StatusError, Error: "no manifest"})
	}
	commit(other)
	if got := wait(); got != 1 {
		t.Errorf("got %d reads after commits of another run, want 1", got)
	}
	commit(task)
	if state := <-states; state != "Terminating" {
		t.Errorf("got status %s, want Terminating", state)
	}
	if got, want := wait()-(counted.of(other)-from), 1; got != want {
		t.Errorf("got %d reads, want %d: the one before the wait", got, want)
	}
}

// awaitPoll returns when a waiting request has set the timer for its next read, which is the
// first timer to fire.
func awaitPoll(stage *apitest.Stage) {
	for {
		if next, waiting := stage.Clock.Next(); waiting && next.Sub(stage.Clock.Now()) <= time.Second {
			return
		}
		runtime.Gosched()
	}
}
