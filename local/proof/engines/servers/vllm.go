package servers

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/sortie-dev/sortie/local/proof/engines/tinymodel"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
)

// vllmPython is the version of Python of vllm.lock.
const vllmPython = "3.11"

// vllmServe is the program that runs vLLM's server.
//
//go:embed vllm/serve.py
var vllmServe string

// vllmReasoning is the parser of reasoning of a server with Options.Calls.
//
//go:embed vllm/reasoning.py
var vllmReasoning string

// vllmImport is the first import of a server. The installation runs it once, because compiling
// its Python files takes most of the time.
const vllmImport = "import vllm.entrypoints.openai.api_server"

// vllm installs vLLM without its GPU parts.
func (i *installer) vllm() (string, error) {
	return i.part("vllm", []string{vllmPython, vllmImport, vllmStandIns}, []string{"vllm.lock"}, func(dir string) error {
		if err := linuxOnAMD64("vLLM"); err != nil {
			return err
		}
		if err := programs(map[string]string{"cc": "a C compiler: apt install gcc"}); err != nil {
			return err
		}
		python, err := i.venv(dir, vllmPython)
		if err != nil {
			return err
		}
		err = i.run("install vLLM", dir, python, "-m", "pip", "install", "--quiet", "--retries", "10", "--no-deps", "--no-compile", "--require-hashes", "--requirement", "vllm.lock")
		if err != nil {
			return err
		}
		if err := i.replaceCUDA(dir, filepath.Join(dir, "python", "lib", "python"+vllmPython, "site-packages", "torch", "lib")); err != nil {
			return err
		}
		return i.run("load vLLM", dir, "env", append([]string{"PYTHONDONTWRITEBYTECODE="}, append(vllmVariables, python, "-c", vllmImport)...)...)
	})
}

// vllmVariables limit vLLM to one thread, which is not bound to a core, and keep it off the
// network. The KV cache has one GiB, the smallest value that can be set.
var vllmVariables = []string{
	"OMP_NUM_THREADS=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "VLLM_CPU_KVCACHE_SPACE=1", "VLLM_HOST_IP=127.0.0.1",
	"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1",
}

// vllm returns the command of a vLLM server. It refuses requests beyond twice its slots.
func (e *Engine) vllm(o Options, s *Server) (*exec.Cmd, error) {
	model, files, program := filepath.Join(o.Folder, "model"), filepath.Join(o.Folder, "files"), filepath.Join(o.Folder, "serve.py")
	for _, folder := range []string{model, files} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return nil, fmt.Errorf("cannot create a folder of the server: %w", err)
		}
	}
	if err := tinymodel.New(o.Shape, modelSeed).WriteFolder(model); err != nil {
		return nil, err
	}
	if err := os.WriteFile(program, []byte(vllmServe), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the program of the server: %w", err)
	}
	command := exec.Command(filepath.Join(e.folder, "python", "bin", "python"), program, //nolint:gosec // G204: its own installation
		"--model", model, "--served-model-name", s.Model, "--host", "127.0.0.1", "--port", strconv.Itoa(o.Port), "--uvicorn-log-level", "warning",
		"--dtype", "float32", "--enforce-eager", "--max-model-len", strconv.Itoa(contextTokens),
		"--max-num-seqs", strconv.Itoa(o.Slots), "--max-num-queued-reqs", strconv.Itoa(2*o.Slots))
	if o.Calls {
		plugin := filepath.Join(o.Folder, "reasoning.py")
		if err := os.WriteFile(plugin, []byte(vllmReasoning), 0o600); err != nil {
			return nil, fmt.Errorf("cannot write the parser of reasoning: %w", err)
		}
		command.Args = append(append(command.Args, vllmCalls...), "--reasoning-parser-plugin", plugin)
	}
	command.Env = step.Environ(e.environ, append([]string{"TMPDIR=" + files, "XDG_CACHE_HOME=" + files, "XDG_CONFIG_HOME=" + files}, vllmVariables...)...)
	return command, nil
}
