// Package cache installs the components of LocalStack into one folder.
//
// A component's folder is named after the component and the digest of its inputs. A change of
// the inputs therefore makes a new folder and never changes a folder that is in use. A folder
// without a stamp file is incomplete and is filled again. If several processes install a
// component concurrently, one installs it and the others wait.
package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/proof/localstack/components"
	"github.com/sortie-dev/sortie/local/proof/localstack/prerequisites"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Cache is the cache folder.
type Cache struct {
	// Dir is the absolute path of the folder.
	Dir   string
	Tools prerequisites.Tools
	// Environ is the environment of pip, Maven and npm, as NAME=VALUE.
	Environ []string
	Clock   clock.Clock
	// Say prints progress, one line per call.
	Say func(format string, args ...any)
}

// stamp is the file that marks a folder as complete.
const stamp = ".whole"

// Plugin returns the plugin's folder for PYTHONPATH.
func (c Cache) Plugin(ctx context.Context) (string, error) {
	digest, err := components.Plugin.Digest()
	if err != nil {
		return "", err
	}
	dir, err := c.Part(ctx, "plugin", digest, func(dir string) error { return components.Plugin.Write(dir) })
	return filepath.Join(dir, string(components.Plugin)), err
}

// Python returns the Python executable of the environment in which LocalStack is installed.
func (c Cache) Python(ctx context.Context) (string, error) {
	digest, err := components.Python.Digest()
	if err != nil {
		return "", err
	}
	dir, err := c.Part(ctx, "python", digest, func(dir string) error {
		if err := components.Python.Write(dir); err != nil {
			return err
		}
		environment := step.Program{Path: c.Tools.Python, Args: []string{"-m", "venv", dir}, Env: c.Environ, Log: c.log("python")}
		if err := step.Run(ctx, "make a Python environment", environment); err != nil {
			return err
		}
		// The lock file lists all packages, so pip resolves no dependencies.
		return step.Run(ctx, "install LocalStack with pip", step.Program{
			Path: pythonIn(dir), Env: c.Environ, Log: c.log("python"),
			Args: []string{
				"-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-deps", "--no-compile",
				"--requirement", filepath.Join(dir, string(components.Python)),
			},
		})
	})
	return pythonIn(dir), err
}

func pythonIn(dir string) string { return filepath.Join(dir, "bin", "python") }

// DynamoDB returns the folder with the jars of DynamoDB Local.
func (c Cache) DynamoDB(ctx context.Context) (string, error) {
	digest, err := components.DynamoDB.Digest()
	if err != nil {
		return "", err
	}
	dir, err := c.Part(ctx, "dynamodb", digest, func(dir string) error {
		if err := components.DynamoDB.Write(dir); err != nil {
			return err
		}
		return step.Run(ctx, "fetch DynamoDB Local with Maven", step.Program{
			Path: c.Tools.Maven, Env: c.Environ, Log: c.log("dynamodb"),
			Args: []string{
				"--batch-mode", "--file", filepath.Join(dir, string(components.DynamoDB)), "dependency:copy-dependencies",
				"-DincludeScope=runtime", "-DoutputDirectory=" + filepath.Join(dir, "jars"),
			},
		})
	})
	return filepath.Join(dir, "jars"), err
}

// CDK returns the folder with the programs cdk and cdklocal, in the versions that the file
// packages, a package.json, requires.
func (c Cache) CDK(ctx context.Context, packages string) (string, error) {
	text, err := os.ReadFile(packages)
	if err != nil {
		return "", fmt.Errorf("cannot read the CDK's versions: %w", err)
	}
	dir, err := c.Part(ctx, "cdk", components.Digest(text), func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "package.json"), text, 0o600); err != nil {
			return fmt.Errorf("cannot write the package.json: %w", err)
		}
		return step.Run(ctx, "install the CDK's command line with npm", step.Program{
			Path: c.Tools.NPM, Dir: dir, Env: c.Environ, Log: c.log("cdk"),
			Args: []string{"install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"},
		})
	})
	return filepath.Join(dir, "node_modules", ".bin"), err
}

// Home returns the home folder for programs that store files in their home folder.
func (c Cache) Home() (string, error) {
	dir := filepath.Join(c.Dir, "home")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("cannot create the cache: %w", err)
	}
	return dir, nil
}

func (c Cache) log(part string) string { return filepath.Join(c.Dir, "logs", part+".log") }

// Part returns the folder of a component and fills it if it is incomplete.
func (c Cache) Part(ctx context.Context, name, digest string, fill func(dir string) error) (string, error) {
	dir := filepath.Join(c.Dir, name+"-"+digest)
	whole := func() bool {
		_, err := os.Stat(filepath.Join(dir, stamp))
		return err == nil
	}
	if whole() {
		return dir, nil
	}
	if err := os.MkdirAll(c.Dir, 0o750); err != nil {
		return "", fmt.Errorf("cannot create the cache: %w", err)
	}
	unlock, err := c.lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if whole() {
		return dir, nil
	}
	started := c.Clock.Now()
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("cannot clear an incomplete folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a container's user reads the plugin
		return "", fmt.Errorf("cannot create the cache: %w", err)
	}
	if err := fill(dir); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, stamp), nil, 0o600); err != nil {
		return "", fmt.Errorf("cannot stamp the cache: %w", err)
	}
	c.Say("installed %s in %.1f s", name, c.Clock.Now().Sub(started).Seconds())
	return dir, nil
}

// lockPause is the polling interval for a lock that another process holds.
const lockPause = 200 * time.Millisecond

// lock acquires a file lock. The kernel releases the lock when the process ends.
func (c Cache) lock(ctx context.Context, name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the cache: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("cannot lock the cache: %w", err)
		}
		if clock.Sleep(ctx, c.Clock, lockPause) != nil {
			_ = file.Close()
			return nil, fmt.Errorf("interrupted while another process installs: %w", context.Cause(ctx))
		}
	}
}
