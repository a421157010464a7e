//go:build unix

// Package bootstraps builds the programs of the functions for this host. The tests of a
// checkout share them, so each is linked once for a state of its sources.
package bootstraps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Build builds the programs that are not up to date, and returns their folder, which has them at
// NAME/bootstrap. Concurrent processes wait for each other. The folder is out/functions in the
// repository, which git ignores.
func Build(ctx context.Context, programs ...string) (folder string, err error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sortie-dev/sortie").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the repository: %w", err)
	}
	root := strings.TrimSpace(string(module))
	folder = filepath.Join(root, "out", "functions")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("cannot lock %s: %w", folder, err)
	}
	builds, building := errgroup.WithContext(ctx)
	builds.SetLimit(runtime.GOMAXPROCS(0))
	for _, program := range programs {
		builds.Go(func() error { return build(building, root, program) })
	}
	return folder, builds.Wait()
}

// build builds a program as a deployment does. The go command only links it if the file has
// another build ID.
func build(ctx context.Context, root, program string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w",
		"-o", filepath.Join("out", "functions", program, "bootstrap"), "./functions/"+program+"/bootstrap")
	command.Dir = root // the tests of infra are in another module
	command.Env = append(command.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w: %s", program, err, text)
	}
	return nil
}
