package servers

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/sortie-dev/sortie/local/proof/engines/tinymodel"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
)

// tritonPython is the Python version for which Triton is installed. It is the newest one with
// which Triton can read texts and whose library Linux distributions have.
const tritonPython = "3.11"

// tritonModel is a model that needs no weights.
//
//go:embed triton/model.py
var tritonModel string

// tritonConfig is the configuration of the model. Its parameters are the slots, the context and
// the pause before each word.
const tritonConfig = `backend: "python"
max_batch_size: 0
model_transaction_policy { decoupled: true }
instance_group [ { count: 1 kind: KIND_CPU } ]
input [
  { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "max_tokens" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "stream" data_type: TYPE_BOOL dims: [ 1 ] optional: true },
  { name: "seed" data_type: TYPE_INT64 dims: [ 1 ] optional: true },
  { name: "temperature" data_type: TYPE_FP32 dims: [ 1 ] optional: true },
  { name: "top_p" data_type: TYPE_FP32 dims: [ 1 ] optional: true }
]
output [
  { name: "text_output" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "finish_reason" data_type: TYPE_STRING dims: [ 1 ] }
]
parameters { key: "slots" value: { string_value: "%d" } }
parameters { key: "context" value: { string_value: "%d" } }
parameters { key: "pause_microseconds" value: { string_value: "%d" } }
`

// triton installs Triton's server.
func (i *installer) triton() (string, error) {
	return i.part("triton", []string{tritonPython}, []string{"triton.lock"}, func(dir string) error {
		if err := linuxOnAMD64("Triton"); err != nil {
			return err
		}
		python, err := i.venv(dir, tritonPython)
		if err != nil {
			return err
		}
		err = i.run("install Triton", dir, python, "-m", "pip", "install", "--quiet", "--retries", "10", "--no-deps", "--require-hashes", "--requirement", "triton.lock")
		if err != nil {
			return err
		}
		// The backend expects the program of the model's process in its own folder.
		server := filepath.Join(dir, tritonServer)
		err = os.Link(filepath.Join(server, "python_backend_stubs", tritonPython, tritonStub), filepath.Join(server, "backends", "python", tritonStub))
		if err != nil {
			return fmt.Errorf("cannot complete Triton's Python backend: %w", err)
		}
		libraries, err := exec.CommandContext(i.ctx, "ldd", filepath.Join(server, "backends", "python", tritonStub)).CombinedOutput() //nolint:gosec // G204: its own installation
		if err != nil || bytes.Contains(libraries, []byte("not found")) {
			return fmt.Errorf("missing libpython%[1]s.so.1.0: apt install libpython%[1]s (%[2]s)", tritonPython, bytes.TrimSpace(libraries))
		}
		return nil
	})
}

const (
	tritonServer = "python/lib/python" + tritonPython + "/site-packages/pytriton/tritonserver"
	tritonStub   = "triton_python_backend_stub"
)

// triton returns the command of a Triton server. A larger model pauses longer before each word.
func (e *Engine) triton(ctx context.Context, o Options, s *Server) (*exec.Cmd, error) {
	pause := 200
	if o.Shape != tinymodel.Tiny {
		pause = 10_000
	}
	folder := filepath.Join(o.Folder, "models", s.Model)
	if err := os.MkdirAll(filepath.Join(folder, "1"), 0o750); err != nil {
		return nil, fmt.Errorf("cannot create the folder of the model: %w", err)
	}
	for name, text := range map[string]string{"1/model.py": tritonModel, "config.pbtxt": fmt.Sprintf(tritonConfig, o.Slots, contextTokens, pause)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("cannot write the model: %w", err)
		}
	}
	metrics, err := step.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	s.MetricsURL = "http://127.0.0.1:" + strconv.Itoa(metrics)
	server := filepath.Join(e.folder, tritonServer)
	command := exec.Command(filepath.Join(server, "bin", "tritonserver"), //nolint:gosec // G204: its own installation
		"--model-repository", filepath.Join(o.Folder, "models"), "--backend-directory", filepath.Join(server, "backends"),
		"--http-address", "127.0.0.1", "--http-port", strconv.Itoa(o.Port), "--allow-grpc", "false",
		"--metrics-address", "127.0.0.1", "--metrics-port", strconv.Itoa(metrics), "--allow-gpu-metrics", "false",
		"--http-thread-count", "32", "--exit-timeout-secs", "5")
	// The process of the model loads its packages from the first python3 in PATH.
	path, _ := variable(e.environ, "PATH")
	command.Env = step.Environ(e.environ, "PATH="+filepath.Join(e.folder, "python", "bin")+string(os.PathListSeparator)+path, "PYTHONDONTWRITEBYTECODE=1")
	return command, nil
}
