package servers

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/localstack/cache"
	"github.com/sortie-dev/sortie/local/proof/localstack/components"
	"github.com/sortie-dev/sortie/local/proof/localstack/prerequisites"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

//go:embed *.lock
var locks embed.FS

// Engine is an installed inference server.
type Engine struct {
	kind    platform.EngineKind
	folder  string
	environ []string
}

// Kinds lists the inference servers that can be installed.
func Kinds() []platform.EngineKind {
	return []platform.EngineKind{platform.EngineLlamaCpp, platform.EngineTriton, platform.EngineVLLM}
}

// Install returns an inference server and installs it if the cache does not have it. environ is
// the environment of the programs and locates the cache. An installation takes minutes; Install
// reports it to say.
func Install(ctx context.Context, kind platform.EngineKind, environ []string, say func(format string, args ...any)) (*Engine, error) {
	i, err := newInstaller(ctx, environ, say)
	if err != nil {
		return nil, err
	}
	var folder string
	switch kind {
	case platform.EngineLlamaCpp:
		folder, err = i.llamacpp()
	case platform.EngineTriton:
		folder, err = i.triton()
	case platform.EngineVLLM:
		folder, err = i.vllm()
	default:
		err = fmt.Errorf("no inference server %q, want one of %v", kind, Kinds())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot install the engine %s: %w", kind, err)
	}
	return &Engine{kind, folder, i.environ}, nil
}

// installer installs the parts of one engine.
type installer struct {
	ctx     context.Context //nolint:containedctx // of one call of Install
	cache   cache.Cache
	environ []string
	say     func(format string, args ...any)
}

func newInstaller(ctx context.Context, environ []string, say func(format string, args ...any)) (*installer, error) {
	i := &installer{ctx: ctx, say: say, environ: step.Environ(environ, "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1")}
	caches, _ := i.lookup("XDG_CACHE_HOME")
	if caches == "" {
		home, ok := i.lookup("HOME")
		if !ok {
			return nil, errors.New("cannot find the cache: missing HOME and XDG_CACHE_HOME")
		}
		caches = filepath.Join(home, ".cache")
	}
	i.cache = cache.Cache{Dir: filepath.Join(caches, "sortie"), Environ: i.environ, Clock: clock.System{}, Say: say}
	return i, nil
}

// lookup returns a variable of the environment.
func (i *installer) lookup(name string) (string, bool) { return variable(i.environ, name) }

func variable(environ []string, name string) (value string, found bool) {
	for _, each := range environ {
		if text, ok := strings.CutPrefix(each, name+"="); ok {
			value, found = text, true
		}
	}
	return value, found
}

// part returns the cache folder of an engine. It calls fill once for each state of the lock
// files and installation settings.
func (i *installer) part(name string, settings []string, lockFiles []string, fill func(dir string) error) (string, error) {
	var inputs []byte
	for _, lock := range lockFiles {
		text, err := locks.ReadFile(lock)
		if err != nil {
			return "", fmt.Errorf("cannot read a lock file: %w", err)
		}
		inputs = append(inputs, text...)
	}
	inputs = append(inputs, strings.Join(settings, "\n")...)
	return i.cache.Part(i.ctx, "engine-"+name, components.Digest(inputs), func(dir string) error {
		i.say("installing the engine %s (minutes, once)", name)
		for _, lock := range lockFiles {
			text, err := locks.ReadFile(lock)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, lock), text, 0o600)
			}
			if err != nil {
				return fmt.Errorf("cannot copy a lock file: %w", err)
			}
		}
		return fill(dir)
	})
}

// run runs a program of an installation with lower priority (nice 5).
func (i *installer) run(what, dir, program string, args ...string) error {
	return step.Run(i.ctx, what, step.Program{
		Path: "nice", Args: append([]string{"-n", "5", program}, args...), Dir: dir, Env: i.environ,
		Log: filepath.Join(i.cache.Dir, "logs", "engine-"+strings.ReplaceAll(what, " ", "-")+".log"),
	})
}

// venv creates a Python environment in the folder and returns the path of its Python.
func (i *installer) venv(dir, version string) (string, error) {
	python, err := prerequisites.Host{Env: i.lookup, Environ: i.environ}.PythonOf(i.ctx, version)
	if err != nil {
		return "", err
	}
	if err := i.run("create a Python environment", dir, python, "-m", "venv", filepath.Join(dir, "python")); err != nil {
		return "", err
	}
	return filepath.Join(dir, "python", "bin", "python"), nil
}

// programs returns an error for each wanted program that is not in PATH. The error says how to
// install it.
func programs(wanted map[string]string) error {
	var missing []error
	for name, how := range wanted {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, fmt.Errorf("missing %s: %s", name, how))
		}
	}
	return errors.Join(missing...)
}

// linuxOnAMD64 returns an error unless the host is Linux on x86-64, as the package needs.
func linuxOnAMD64(what string) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return errors.New("missing Linux on an x86-64 processor, for which the package of " + what + " is built")
	}
	return nil
}
