package fly_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// TestMain also runs as the supervisor and the program of machines.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(supervisor.Main(os.Args[2:]))
		case "program":
			terminated := make(chan os.Signal, 1)
			signal.Notify(terminated, syscall.SIGTERM)
			os.Exit(porttest.RunnerProgram(os.Getenv, terminated, nil))
		}
	}
	goleak.VerifyTestMain(m)
}

const image, shell = "registry.fly.io/program:v1", "registry.fly.io/shell:v1"

// machinesAPI is a machines API with real processes, and a Runner that uses it.
type machinesAPI struct {
	server *flymachines.Server
	url    string
	runner *fly.Runner
}

func setup(t *testing.T, change ...func(*fly.Config)) machinesAPI {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(logTo{t}, nil))
	apps := []string{"workers-1", "workers-2", "workers-3"}
	server, err := flymachines.Open(flymachines.Config{
		Dir: t.TempDir(), Token: "fly-token", Apps: apps, Images: map[string][]string{image: {self, "program"}, shell: {"/bin/sh"}},
		Starter: flymachines.Processes{Command: []string{self, "supervise"}, Clock: clock.System{}},
		Clock:   clock.System{}, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no grace period
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	cfg := fly.Config{
		Apps: apps, Token: "fly-token", BaseURL: web.URL, Cluster: "test", LookAgain: 10 * time.Millisecond,
		Clock: clock.System{}, Log: log,
	}
	for _, c := range change {
		c(&cfg)
	}
	runner, err := fly.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runner.Close)
	return machinesAPI{server, web.URL, runner}
}

type logTo struct{ t *testing.T }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// inject sets the faults of the platform.
func (p machinesAPI) inject(t *testing.T, rules ...faults.Rule) {
	t.Helper()
	if err := p.server.SetFaults(faults.Plan{Rules: rules}); err != nil {
		t.Fatal(err)
	}
}

func TestRunner(t *testing.T) {
	t.Parallel()
	porttest.Runner(t, func(t *testing.T) porttest.RunnerHarness {
		p := setup(t)
		return porttest.RunnerHarness{
			Runner: p.runner, Image: image, NoImage: "registry.fly.io/unknown:none", Unknown: port.Machine{Runner: "fly", App: "workers-1", ID: "0123456789abcd"},
			Occupy: func(t *testing.T, name string) {
				for _, app := range []string{"workers-1", "workers-2", "workers-3"} {
					p.occupy(t, app, name)
				}
			},
			FailPart: func(t *testing.T, m port.MachineStatus) {
				p.inject(t, faults.Rule{Kind: faults.BadGateway, App: m.App, Action: faults.List})
			},
			Fault: func(t *testing.T, name string, how porttest.RunnerFault) {
				p.inject(t, map[porttest.RunnerFault]faults.Rule{
					porttest.RunnerThrottles:    {Kind: faults.Throttle, Name: name, Times: 1},
					porttest.RunnerIsFull:       {Kind: faults.Capacity, Name: name, Times: 1},
					porttest.RunnerLosesRequest: {Kind: faults.BadGateway, Name: name, Times: 4}, // the client tries four times
					porttest.RunnerLosesAnswer:  {Kind: faults.LostAnswer, Name: name, Times: 1},
				}[how])
			},
		}
	})
}

// occupy creates a machine without Sortie's metadata.
func (p machinesAPI) occupy(t *testing.T, app, name string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "config": map[string]any{
		"image": image, "env": map[string]string{"RUNNER_DOES": "rest"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/v1/apps/"+app+"/machines", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer fly-token")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	if resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("cannot occupy %s: %s", name, resp.Status)
	}
}
