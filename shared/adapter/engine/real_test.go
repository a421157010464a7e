package engine_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/localstack/step"
	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest"
)

// TestRealLlamaServer runs the suite on a llama-server: LLAMA_SERVER is the program and
// LLAMA_MODEL a small model in the GGUF format.
func TestRealLlamaServer(t *testing.T) {
	t.Parallel()
	program, model := os.Getenv("LLAMA_SERVER"), os.Getenv("LLAMA_MODEL")
	if program == "" || model == "" {
		t.Skip("LLAMA_SERVER and LLAMA_MODEL name no llama-server and no model")
	}
	porttest.Engine(t, func(t *testing.T) porttest.EngineHarness {
		address := startLlama(t, program, model)
		now := clock.NewVirtual(start)
		e, err := engine.New(engine.Config{Kind: port.EngineLlamaCpp, URL: address, Clock: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return porttest.EngineHarness{
			Engine: e, Clock: now, Model: "tiny", Messages: true, Stops: true,
			Idle: func(t *testing.T) { waitIdle(t, e) },
		}
	})
}

// waitIdle asks the engine until it has no request.
func waitIdle(t *testing.T, e port.Engine) {
	t.Helper()
	for {
		load, err := e.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if *load.Running == 0 {
			return
		}
	}
}

// startLlama starts the server and returns its address when it has loaded the model.
func startLlama(t *testing.T, program, model string) string {
	t.Helper()
	free, err := step.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(program, "-m", model, "--alias", "tiny", "--host", "127.0.0.1", "--port", fmt.Sprint(free), //nolint:gosec // a test's own program
		"--offline", "--no-ui", "-t", "1", "-tb", "1", "--poll", "0", "--cache-ram", "0", "-np", "2", "-c", "2048", "--metrics", "--slots", "--props")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
	})
	address := fmt.Sprintf("http://127.0.0.1:%d", free)
	for range 400 {
		if resp, err := http.Get(address + "/health"); err == nil { //nolint:noctx // a test
			line, _ := bufio.NewReader(resp.Body).ReadString('\n')
			resp.Body.Close()
			if strings.Contains(line, "ok") {
				return address
			}
		}
		if err := clock.Sleep(t.Context(), clock.System{}, 25*time.Millisecond); err != nil { // a real program starts
			t.Fatal(err)
		}
	}
	t.Fatalf("llama-server does not start:\n%s", log.String())
	return ""
}

// TestRealTriton runs the suite on the Triton at TRITON_URL, with the model TRITON_MODEL,
// one test after the other.
func TestRealTriton(t *testing.T) {
	t.Parallel()
	address, model := os.Getenv("TRITON_URL"), os.Getenv("TRITON_MODEL")
	if address == "" || model == "" {
		t.Skip("TRITON_URL and TRITON_MODEL name no Triton and no model")
	}
	var one sync.Mutex
	porttest.Engine(t, func(t *testing.T) porttest.EngineHarness {
		one.Lock()
		t.Cleanup(one.Unlock)
		now := clock.NewVirtual(start)
		e, err := engine.New(engine.Config{Kind: port.EngineTriton, URL: address, MetricsURL: os.Getenv("TRITON_METRICS_URL"), Slots: 2, ContextTokens: 4096, Clock: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return porttest.EngineHarness{Engine: e, Clock: now, Model: model, Names: true, Idle: func(*testing.T) {}}
	})
}
