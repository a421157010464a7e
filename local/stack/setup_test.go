package stack_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/worker/program"
	"github.com/sortie-dev/sortie/local/collection"
	"github.com/sortie-dev/sortie/local/flymachines"
	"github.com/sortie-dev/sortie/local/stack"
	"github.com/sortie-dev/sortie/shared/contract"
)

// TestMain lets the test binary be every program that a stack runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "worker":
			os.Exit(program.Main(context.Background(), os.Environ(), os.Stderr))
		case "machine-supervisor":
			os.Exit(flymachines.Supervise(os.Args[2:]))
		case "serve":
			os.Exit(serveStack())
		case "play":
			os.Exit(play(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// serveStack is a stack in a process of its own, which can be killed. Its
// configuration comes as JSON on standard input, its addresses go out.
func serveStack() int {
	var given served
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return 2
	}
	config, err := configure(given)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	s, err := stack.Start(context.Background(), config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(s.Addresses()); err != nil {
		return 1
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	<-stop.Done()
	if s.Stop(context.Background()) != nil {
		return 1
	}
	return 0
}

// served is the configuration of a test's stack.
type served struct {
	Data     string
	Settings map[string]string
	// Play is what the worker does instead of exporting: see play.
	Play string
	// Source is another entity API than the sample's.
	Source string
}

func configure(given served) (stack.Config, error) {
	settings, err := stack.SettingsFrom(func(name string) (string, bool) {
		value, ok := given.Settings[name]
		return value, ok
	})
	executable, osErr := os.Executable()
	if err != nil || osErr != nil {
		return stack.Config{}, fmt.Errorf("cannot configure: %w %w", err, osErr)
	}
	config := stack.Config{
		Addr: "127.0.0.1:0", DataDir: given.Data, Executable: []string{executable}, Settings: settings,
		SourceURL: given.Source, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Version: "test",
		SweepInterval: 100 * time.Millisecond,
	}
	if given.Play != "" {
		config.Images = map[string][]string{settings.Service.Image: append([]string{executable, "play"}, strings.Fields(given.Play)...)}
	}
	return config, nil
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
	config, err := configure(given)
	if err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := stack.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("the stack does not stop: %v", err)
		}
		if t.Failed() {
			t.Logf("the stack's log:\n%s", log.String())
		}
		noSecrets(t, log.String())
	})
	return &target{t, s.Addresses(), s}
}

// noSecrets fails the test where a log holds what it must not.
func noSecrets(t *testing.T, log string) {
	t.Helper()
	for _, secret := range []string{"eyJ", "X-Amz-Signature", "token=", "SECRET"} {
		if at := strings.Index(log, secret); at >= 0 {
			t.Errorf("a secret is in the log: %.200s", log[max(at-80, 0):])
		}
	}
}

// lockedBuffer is a buffer for a logger.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// child is a stack in a process of its own.
type child struct {
	*target
	command *exec.Cmd
	log     *lockedBuffer
}

// spawn starts a stack in a process of its own.
func spawn(t *testing.T, given served) *child {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{target: &target{t: t}, command: exec.Command(executable, "serve"), log: &lockedBuffer{}}
	c.command.Stdin, c.command.Stderr = bytes.NewReader(input), c.log
	output, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.kill(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the stack's log:\n%s", c.log.String())
		}
		noSecrets(t, c.log.String())
	})
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.Addresses)
	}
	if err != nil {
		t.Fatalf("the stack does not start: %v\n%s", err, c.log.String())
	}
	return c
}

// kill sends a signal and waits for the process's end.
func (c *child) kill(s syscall.Signal) {
	if c.command.ProcessState != nil {
		return
	}
	if err := c.command.Process.Signal(s); err != nil {
		c.t.Errorf("cannot end the stack: %v", err)
	}
	_ = c.command.Wait() //nolint:errcheck // it was ended on purpose
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
	for {
		code, _, text := g.call(http.MethodGet, "/status/"+task+"?wait=5", "")
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
	ends := 0
	for i, e := range events {
		if e.Seq != i+1 {
			g.t.Errorf("the events of %s have a gap at %d", task, i+1)
		}
		switch e.Type {
		case "run.completed", "run.failed", "run.cancelled", "run.orphaned":
			ends++
		}
	}
	if ends != 1 {
		g.t.Errorf("%s has %d ends", task, ends)
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
