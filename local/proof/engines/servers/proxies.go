package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/sortie-dev/sortie/local/proof/localstack/step"
)

// ProxyKind is a proxy that users run in front of inference servers. Benchmarks compare its
// overhead with Sortie's.
type ProxyKind string

// The proxies.
const (
	ProxyVLLMRouter ProxyKind = "vllm-router"
	ProxyLiteLLM    ProxyKind = "litellm"
)

// Proxies are installed proxies.
type Proxies struct {
	folder  string
	environ []string
}

// InstallProxies returns the proxies and installs them if the cache does not have them. environ
// and say are as in Install.
func InstallProxies(ctx context.Context, environ []string, say func(format string, args ...any)) (*Proxies, error) {
	i, err := newInstaller(ctx, environ, say)
	if err != nil {
		return nil, err
	}
	folder, err := i.part("proxies", nil, []string{"proxies.lock"}, func(dir string) error {
		python, err := i.venv(dir, "3.13")
		if err != nil {
			return err
		}
		return i.run("install the proxies", dir, python, "-m", "pip", "install", "--quiet", "--retries", "10", "--no-deps", "--require-hashes", "--requirement", "proxies.lock")
	})
	if err != nil {
		return nil, fmt.Errorf("cannot install the proxies: %w", err)
	}
	return &Proxies{folder, i.environ}, nil
}

// Start starts a proxy in front of the inference server at url. It returns when the proxy
// accepts requests for the model. folder is an existing folder for its files. The caller kills
// the proxy.
func (p *Proxies) Start(ctx context.Context, kind ProxyKind, url, model, folder string) (*Server, error) {
	port, err := step.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://127.0.0.1:" + strconv.Itoa(port), Model: model, Port: port, log: &record{}, ended: make(chan struct{})}
	program := filepath.Join(p.folder, "python", "bin", string(kind))
	switch kind {
	case ProxyVLLMRouter:
		metrics, err := step.FreePort(ctx)
		if err != nil {
			return nil, err
		}
		s.ready = "/health"
		s.command = exec.Command(program, "--worker-urls", url, "--host", "127.0.0.1", "--port", strconv.Itoa(port), //nolint:gosec // G204: its own installation
			"--policy", "round_robin", "--prometheus-host", "127.0.0.1", "--prometheus-port", strconv.Itoa(metrics), "--log-level", "warning")
	case ProxyLiteLLM:
		s.ready = "/health/liveliness"
		config, err := json.Marshal(map[string]any{"model_list": []any{map[string]any{ // JSON is YAML
			"model_name": model, "litellm_params": map[string]string{"model": "text-completion-openai/" + model, "api_base": url + "/v1", "api_key": "none"},
		}}})
		if err != nil {
			return nil, fmt.Errorf("cannot write the settings of %s: %w", kind, err)
		}
		file := filepath.Join(folder, "litellm.yaml")
		if err := os.WriteFile(file, config, 0o600); err != nil {
			return nil, fmt.Errorf("cannot write the settings of %s: %w", kind, err)
		}
		s.command = exec.Command(program, "--config", file, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--telemetry", "False") //nolint:gosec // G204: its own installation
	default:
		return nil, errors.New("no proxy " + string(kind))
	}
	// Use the price list of the installation. The proxy needs no key because only the caller
	// uses it.
	s.command.Env = step.Environ(p.environ, "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true")
	s.command.Dir = folder
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("the proxy %s does not start: %w:\n%s", kind, err, s.Log())
	}
	return s, nil
}
