package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/sortie-dev/sortie/local/proof/localstack/cache"
	"github.com/sortie-dev/sortie/local/proof/localstack/components"
	"github.com/sortie-dev/sortie/local/proof/localstack/prerequisites"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// The pinned versions that are in no lock file.
const (
	oapiCodegen     = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
	generator       = "7.17.0"
	generatorSHA256 = "25d6bd8273dd2be99979d544b62ea43f0ce1975f1aa582678b5093d1e7fcfce8"
	mavenCopy       = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
)

// home is the path of this folder in the repository.
const home = "local/proof/validate"

// kit is the shared state of the checks.
type kit struct {
	quick   bool
	lookup  func(string) (string, bool)
	environ []string

	root string
	// installed is the folder of the validators. work is a folder of this process.
	installed, work string
	tools           prerequisites.Tools

	// mu guards the servers and programs, which concurrent checks start.
	mu       sync.Mutex
	servers  []*server
	programs []*exec.Cmd
}

// prepare installs the validators and builds the command line.
func (k *kit) prepare(ctx context.Context) error {
	var err error
	if k.root, err = os.Getwd(); err != nil {
		return fmt.Errorf("cannot find the repository: %w", err)
	}
	if _, err := os.Stat(k.config("")); err != nil {
		return fmt.Errorf("want the repository as working folder: %w", err)
	}
	k.environ = step.Environ(k.environ, "NO_COLOR=1", "NODE_NO_WARNINGS=1", "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	k.tools, err = prerequisites.Host{Env: k.lookup, Environ: k.environ}.Python(ctx)
	if err != nil {
		return fmt.Errorf("cannot run the validators: %w", err)
	}
	if err := k.install(ctx); err != nil {
		return err
	}
	if k.work, err = os.MkdirTemp("", "sortie-validate-"); err != nil {
		return fmt.Errorf("cannot create a folder: %w", err)
	}
	return k.exec(ctx, "build the command line", call{args: []string{k.tools.Go, "build", "-o", k.sortie(), "./local/sortie"}, env: []string{"CGO_ENABLED=0"}})
}

// close ends the servers and removes the work folder. The programs are already killed.
func (k *kit) close() error {
	for _, each := range k.programs {
		_ = each.Wait() // a killed program returns an error
	}
	var failed []error
	for _, s := range k.servers {
		failed = append(failed, s.end(syscall.SIGINT))
	}
	return errors.Join(append(failed, os.RemoveAll(k.work))...)
}

func (k *kit) sortie() string            { return filepath.Join(k.work, "sortie") }
func (k *kit) config(name string) string { return filepath.Join(k.root, home, name) }
func (k *kit) npm(name string) string {
	return filepath.Join(k.installed, "node_modules", ".bin", name)
}

func (k *kit) python(name string) string { return filepath.Join(k.installed, "python", "bin", name) }

func (k *kit) jar() string {
	return filepath.Join(k.installed, "openapi-generator-cli-"+generator+".jar")
}

// part returns a folder of the cache. It calls fill once for each state of the lock files and
// the other pinned versions.
func (k *kit) part(ctx context.Context, name, pinned string, locks []string, fill func(dir string) error) (string, error) {
	caches, ok := k.lookup("XDG_CACHE_HOME")
	if !ok || caches == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("cannot find the cache: %w", err)
		}
		caches = filepath.Join(user, ".cache")
	}
	texts := map[string][]byte{}
	digested := []byte(pinned)
	for _, lock := range locks {
		text, err := os.ReadFile(k.config(lock))
		if err != nil {
			return "", fmt.Errorf("cannot read a lock file: %w", err)
		}
		texts[lock], digested = text, append(digested, text...)
	}
	store := cache.Cache{
		Dir: filepath.Join(caches, "sortie"), Tools: k.tools, Environ: k.environ, Clock: clock.System{},
		Say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) },
	}
	return store.Part(ctx, name, components.Digest(digested), func(dir string) error {
		for lock, text := range texts {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(lock)), text, 0o600); err != nil {
				return fmt.Errorf("cannot copy a lock file: %w", err)
			}
		}
		return fill(dir)
	})
}

// install installs the programs that most checks use.
func (k *kit) install(ctx context.Context) error {
	var err error
	k.installed, err = k.part(ctx, "validate", generatorSHA256, []string{"requirements.lock", "package.json", "package-lock.json"}, func(dir string) error {
		return k.fill(ctx, dir)
	})
	return err
}

func (k *kit) fill(ctx context.Context, dir string) error {
	k.installed = dir
	for _, each := range []struct {
		what string
		args []string
	}{
		{"create a Python environment", []string{k.tools.Python, "-m", "venv", filepath.Join(dir, "python")}},
		{"install the Python validators", []string{
			k.python("pip"), "install", "--disable-pip-version-check", "--no-input", "--quiet", "--no-deps", "--require-hashes",
			"--requirement", "requirements.lock",
		}},
		{"install the Node validators", []string{k.tools.NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}},
		{"fetch openapi-generator", []string{
			k.tools.Maven, "--batch-mode", "--quiet", mavenCopy,
			"-Dartifact=org.openapitools:openapi-generator-cli:" + generator, "-DoutputDirectory=" + dir,
		}},
	} {
		if err := k.exec(ctx, each.what, call{args: each.args, dir: dir}); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(k.jar())
	if err != nil {
		return fmt.Errorf("cannot read openapi-generator: %w", err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != generatorSHA256 {
		return fmt.Errorf("openapi-generator %s: got SHA-256 %x, want %s", generator, sum, generatorSHA256)
	}
	return nil
}

// call is one run of a program, by default in the repository's folder.
type call struct {
	args []string
	dir  string
	env  []string
}

// exec runs a program. It prints the program's output if it fails.
func (k *kit) exec(ctx context.Context, what string, c call) error {
	_, err := k.output(ctx, what, c)
	return err
}

// output is like exec and returns the output.
func (k *kit) output(ctx context.Context, what string, c call) (string, error) {
	if c.dir == "" {
		c.dir = k.root
	}
	var output bytes.Buffer
	err := step.Run(ctx, what, step.Program{
		Path: c.args[0], Args: c.args[1:], Dir: c.dir, Env: slices.Concat(k.environ, c.env), Output: &output,
	})
	if err != nil {
		fmt.Printf("%s\n", output.Bytes())
		return "", fmt.Errorf("%s: %w", filepath.Base(c.args[0]), err)
	}
	return output.String(), nil
}
