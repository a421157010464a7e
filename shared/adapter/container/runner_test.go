package container_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/container"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestMain also runs as the program of containers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "program" {
		switch os.Getenv("RUNNER_DOES") {
		case "eat":
			eat()
		case "look":
			look()
		}
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		os.Exit(porttest.RunnerProgram(os.Getenv, terminated, nil))
	}
	goleak.VerifyTestMain(m)
}

// eat uses memory until it is killed.
func eat() {
	for block := range 1 << 20 {
		memory, err := syscall.Mmap(-1, 0, 1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			fmt.Println(block, err)
			os.Exit(1)
		}
		for i := 0; i < len(memory); i += 4096 {
			memory[i] = 1
		}
	}
}

// look prints the permissions of the program.
func look() {
	status, err := os.ReadFile("/proc/self/status")
	fmt.Println(string(status), err)
	fmt.Fprintln(os.Stderr, os.WriteFile("/file", nil, 0o600))
	if os.WriteFile("/tmp/file", nil, 0o600) == nil {
		fmt.Println("/tmp is writable")
	}
	os.Exit(5)
}

const image = "program:v1"

// unknown is a machine that does not exist.
var unknown = port.Machine{Runner: "container", ID: strings.Repeat("0f", 32)}

// platform is an engine with a Runner that uses it.
type platform struct {
	engine *engine
	proxy  *proxy
	runner *container.Runner
	config container.Config
}

func setup(t *testing.T, change ...func(*container.Config)) platform {
	t.Helper()
	e := newEngine(t)
	proxy := newProxy(t, e.serve())
	runner, config := newRunner(t, proxy.url, "test", change...)
	return platform{e, proxy, runner, config}
}

func newRunner(t *testing.T, address, cluster string, change ...func(*container.Config)) (*container.Runner, container.Config) {
	t.Helper()
	config := container.Config{
		Addresses: container.Addresses{Tried: []string{address}}, Cluster: cluster, Dir: t.TempDir() + "/notes",
		Clock: clock.System{}, Log: slog.New(slog.NewTextHandler(logTo{t}, nil)),
	}
	for _, c := range change {
		c(&config)
	}
	return open(t, config), config
}

func open(t *testing.T, config container.Config) *container.Runner {
	t.Helper()
	runner, err := container.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
	})
	return runner
}

type logTo struct{ t *testing.T }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

func TestRunner(t *testing.T) {
	t.Parallel()
	porttest.Runner(t, func(t *testing.T) porttest.RunnerHarness {
		p := setup(t)
		return porttest.RunnerHarness{
			Runner: p.runner, Image: image, NoImage: "registry.example.org/none:v1", Unknown: unknown,
			Occupy: func(t *testing.T, name string) {
				occupy(t, http.DefaultTransport, p.proxy.url, "program:v1", "sortie-test-"+name)
			},
			Fault: func(_ *testing.T, name string, how porttest.RunnerFault) { p.proxy.fail(name, how) },
		}
	})
}

// occupy creates a container without the labels of Sortie.
func occupy(t *testing.T, via http.RoundTripper, address, image, name string) {
	t.Helper()
	body := `{"Image": "` + image + `", "Env": ["RUNNER_DOES=rest"], "Labels": {"dev.sortie.cluster": "other"}, "HostConfig": {"NetworkMode": "none"}}`
	base := "http://" + strings.TrimPrefix(address, "tcp://") + "/v1.41/containers/"
	for _, target := range []string{base + "create?name=" + url.QueryEscape(name), base + url.PathEscape(name) + "/start"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		got, err := via.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if got.Body.Close() != nil || got.StatusCode >= 300 {
			t.Fatalf("cannot occupy %s: %s", name, got.Status)
		}
	}
	if idle, ok := via.(*http.Transport); ok {
		idle.CloseIdleConnections()
	}
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
