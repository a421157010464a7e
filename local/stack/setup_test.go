package stack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/collection"
	"github.com/sortie-dev/sortie/local/stack"
	"github.com/sortie-dev/sortie/local/stacktest"
	"github.com/sortie-dev/sortie/shared/contract"
)

func TestMain(m *testing.M) { stacktest.Main(m, os.Args, os.Environ(), nil) }

// served is the configuration of a test's stack.
type served = stacktest.Config

func configure(given served) (stack.Config, error) {
	return given.Stack(slog.New(slog.DiscardHandler))
}

// target is a running stack as a client sees it.
type target struct {
	t *testing.T
	stack.Addresses
	stack *stack.Stack
}

// start starts a stack in this process; the test's end stops it.
func start(t *testing.T, given served) *target {
	t.Helper()
	if given.Data == "" {
		given.Data = t.TempDir()
	}
	log := &stacktest.Log{}
	config, err := given.Stack(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("the stack does not stop: %v", err)
		}
		show(t, log)
	})
	return &target{t, s.Addresses(), s}
}

// show prints a log where the test has failed, and fails it where the log
// holds what it must not.
func show(t *testing.T, log *stacktest.Log) {
	t.Helper()
	if t.Failed() {
		t.Logf("the stack's log:\n%s", log)
	}
	if err := log.Secrets(); err != nil {
		t.Error(err)
	}
}

// child is a stack in a process of its own.
type child struct {
	*target
	process *stacktest.Process
}

// spawn starts a stack in a process of its own.
func spawn(t *testing.T, given served) *child {
	t.Helper()
	log := &stacktest.Log{}
	process, err := stacktest.Launch(given, log)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{target: &target{t: t}, process: process}
	t.Cleanup(func() {
		c.kill(syscall.SIGTERM)
		show(t, log)
	})
	select {
	case <-process.Ready():
		c.Addresses = process.Addresses()
	case <-process.Ended():
		t.Fatalf("the stack does not start:\n%s", log)
	}
	return c
}

// kill sends a signal and waits for the process's end.
func (c *child) kill(s syscall.Signal) {
	if _, err := c.process.End(s); err != nil {
		c.t.Error(err)
	}
}

// call makes a request and reads the answer.
func (g *target) call(method, path, body string, header ...string) (int, http.Header, []byte) {
	g.t.Helper()
	request, err := http.NewRequestWithContext(g.t.Context(), method, g.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, text
}

// post accepts an export of the sample.
func (g *target) post(options string) string {
	g.t.Helper()
	return g.postPI(collection.SampleRoot, options)
}

func (g *target) postPI(pi, options string) string {
	g.t.Helper()
	code, _, text := g.call(http.MethodPost, "/export/mods", fmt.Sprintf(`{"pi":%q,"options":%s}`, pi, options))
	accepted := decode[contract.ExportAccepted](g.t, text)
	if code != http.StatusAccepted || accepted.Status != contract.StatusProcessing {
		g.t.Fatalf("POST /export/mods: %d %s", code, text)
	}
	return accepted.TaskID
}

// await follows a task until enough says so, or it has ended.
func (g *target) await(task string, enough func(contract.Status) bool) contract.Status {
	g.t.Helper()
	for wait := ""; ; wait = "?wait=5" {
		code, _, text := g.call(http.MethodGet, "/status/"+task+wait, "")
		if code != http.StatusOK {
			g.t.Fatalf("GET /status: %d %s", code, text)
		}
		status := decode[contract.Status](g.t, text)
		if status.Status != contract.StatusProcessing || enough(status) {
			return status
		}
	}
}

// end follows a task to its end.
func (g *target) end(task string) contract.Status {
	g.t.Helper()
	return g.await(task, func(contract.Status) bool { return false })
}

// events reads all events of a task and holds them to be without gaps.
func (g *target) events(task string) []contract.TaskEvent {
	g.t.Helper()
	_, _, text := g.call(http.MethodGet, "/v1/tasks/"+task+"/events?limit=1000", "")
	events := decode[contract.TaskEvents](g.t, text).Events
	if err := stacktest.CheckEvents(events); err != nil {
		g.t.Errorf("%s: %v", task, err)
	}
	return events
}

func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %.500s", err, text)
	}
	return v
}
