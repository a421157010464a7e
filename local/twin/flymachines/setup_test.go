package flymachines_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
	"github.com/superfly/fly-go/tokens"
	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

const (
	app   = "workers"
	image = "registry.fly.io/shell:v1" // runs init.cmd[0] as a bash script
	token = "local-token"
)

// TestMain is also the main function of the supervisor and of the server of the
// crash tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(supervisor.Main(os.Args[2:]))
		case "serve":
			os.Exit(serve(os.Args[2]))
		}
	}
	goleak.VerifyTestMain(m)
}

// machines is a server with the real client.
type machines struct {
	t      *testing.T
	server *flymachines.Server
	url    string
	client *flaps.Client
	ear    net.Listener
}

func processes(t testing.TB) flymachines.Processes {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return flymachines.Processes{Command: []string{self, "supervise"}, Clock: clock.System{}}
}

func config(t testing.TB, starter flymachines.Starter) flymachines.Config {
	t.Helper()
	return flymachines.Config{
		Dir: t.TempDir(), Token: token, Apps: []string{app, "other"}, Starter: starter,
		Images: map[string][]string{image: {"/bin/bash", "-c"}},
		Clock:  clock.System{}, Log: slog.New(slog.NewTextHandler(logTo{t}, nil)),
	}
}

type logTo struct{ t testing.TB }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// setup opens a server of real processes; change may modify its configuration.
func setup(t *testing.T, change ...func(*flymachines.Config)) *machines {
	t.Helper()
	cfg := config(t, processes(t))
	for _, c := range change {
		c(&cfg)
	}
	server, err := flymachines.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // kill at once
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	m := connect(t, web.URL)
	m.server = server
	return m
}

// connect returns the real client of a server.
func connect(t *testing.T, address string) *machines {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 50}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := flaps.NewWithOptions(t.Context(), flaps.NewClientOpts{
		Tokens: tokens.Parse(token), Transport: redirect{base, transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	ear, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ear.Close() })
	return &machines{t: t, url: address, client: client, ear: ear}
}

// redirect sends the client's requests to a server. It reads the request body completely before
// it forwards it. The client's retries rewind the body, which the transport may still be
// reading when an answer arrives this fast.
type redirect struct {
	base *url.URL
	http.RoundTripper
}

func (r redirect) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	req.URL.Scheme, req.URL.Host = r.base.Scheme, r.base.Host
	return r.RoundTripper.RoundTrip(req)
}

// input returns a machine that runs a script, configured as Sortie does.
func (m *machines) input(name, script string) fly.LaunchMachineInput {
	signal := "SIGTERM"
	return fly.LaunchMachineInput{
		Name: name, Region: "ord",
		Config: &fly.MachineConfig{
			Image: image, Init: fly.MachineInit{Cmd: []string{script}}, AutoDestroy: true,
			Env:        map[string]string{"EAR": m.port()},
			Restart:    &fly.MachineRestart{Policy: fly.MachineRestartPolicyNo},
			Guest:      &fly.MachineGuest{CPUKind: "shared", CPUs: 1, MemoryMB: 256},
			StopConfig: &fly.StopConfig{Signal: &signal, Timeout: &fly.Duration{Duration: time.Hour}},
			Metadata:   map[string]string{"run_id": name, "orchestrator": "test"},
		},
	}
}

func (m *machines) port() string {
	_, port, err := net.SplitHostPort(m.ear.Addr().String())
	if err != nil {
		m.t.Fatal(err)
	}
	return port
}

func (m *machines) launch(in fly.LaunchMachineInput) *fly.Machine {
	m.t.Helper()
	made, err := m.client.Launch(m.t.Context(), app, in)
	if err != nil {
		m.t.Fatal(err)
	}
	return made
}

// saying returns a piece of script that sends words to receive.
func saying(words string) string { return `echo ` + words + ` >/dev/tcp/127.0.0.1/$EAR; ` }

// receive returns the next words that a script sends.
func (m *machines) receive() string {
	m.t.Helper()
	conn, err := m.ear.Accept()
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		m.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (m *machines) wait(id string, state string) {
	m.t.Helper()
	if err := m.client.Wait(m.t.Context(), app, id, flaps.WithWaitStates(state), flaps.WithWaitTimeout(time.Minute)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machines) get(id string) *fly.Machine {
	m.t.Helper()
	got, err := m.client.Get(m.t.Context(), app, id)
	if err != nil {
		m.t.Fatal(err)
	}
	return got
}

// exit waits until the machine is destroyed and returns its exit event.
func (m *machines) exit(id string) *fly.MachineExitEvent {
	m.t.Helper()
	m.wait(id, "destroyed")
	e := m.get(id).GetLatestEventOfType("exit")
	if e == nil || e.Request == nil || e.Request.ExitEvent == nil {
		m.t.Fatalf("machine %s has no exit event", id)
	}
	return e.Request.ExitEvent
}

// list returns the names of the machines that match a query.
func (m *machines) list(query string) []string {
	m.t.Helper()
	found, err := m.client.List(m.t.Context(), app, query)
	if err != nil {
		m.t.Fatal(err)
	}
	names := []string{}
	for _, machine := range found {
		names = append(names, machine.Name)
	}
	slices.Sort(names)
	return names
}

// events returns a machine's events, the oldest first.
func events(machine *fly.Machine) string {
	var told []string
	for _, e := range slices.Backward(machine.Events) {
		told = append(told, e.Type+"/"+e.Status+"/"+e.Source)
	}
	return strings.Join(told, " ")
}

// refused fails unless err is Fly's error with this status and text.
func refused(t *testing.T, err error, status int, text string) {
	t.Helper()
	answer, ok := errors.AsType[*flaps.FlapsError](err)
	if !ok || answer.ResponseStatusCode != status || !strings.Contains(answer.Error(), text) {
		t.Errorf("err = %v, want %d %q", err, status, text)
	}
}

// call sends a request that the client cannot send. It returns the status and body.
func (m *machines) call(method, path, auth string, body any) (int, map[string]any) {
	m.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		m.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(m.t.Context(), method, m.url+path, bytes.NewReader(data))
	if err != nil {
		m.t.Fatal(err)
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	if resp.Header.Get("Fly-Request-Id") == "" {
		m.t.Error("answer without Fly-Request-Id")
	}
	var decoded map[string]any
	if len(text) > 0 && text[0] == '{' {
		if err := json.Unmarshal(text, &decoded); err != nil {
			m.t.Fatal(err)
		}
	}
	return resp.StatusCode, decoded
}
