// Package debian fetches packages of Debian without installing them, for tests that need
// programs of the system. It needs apt-get and dpkg-deb.
package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// complete is the marker file in a folder that has all packages.
const complete = "complete"

// Fetch returns the cache folder sortie/NAME with the files of the packages. If the folder is
// not complete, Fetch reports that to say and downloads the packages with apt-get. It then
// calls change, unless nil, with the folder.
func Fetch(ctx context.Context, name string, packages []string, say func(string), change func(root string) error) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "sortie", name)
	if _, err := os.Stat(filepath.Join(root, complete)); err == nil {
		return root, nil
	}
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%s is missing, want Debian or a system with its packages", tool)
		}
	}
	debs, err := os.MkdirTemp("", "sortie-debian-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(debs) }()        // downloads alone
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // G301: programs
		return "", err
	}
	say("fetching packages into " + root)
	if err := run(ctx, debs, "apt-get", append([]string{"download", "-q", "-o", "APT::Sandbox::User=root"}, packages...)...); err != nil {
		return "", fmt.Errorf("%w; run apt-get update", err)
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil || len(files) < len(packages) {
		return "", errors.Join(err, fmt.Errorf("got %d packages, want %d", len(files), len(packages)))
	}
	for _, file := range files {
		if err := run(ctx, debs, "dpkg-deb", "-x", file, root); err != nil {
			return "", err
		}
	}
	if change != nil {
		if err := change(root); err != nil {
			return "", err
		}
	}
	return root, os.WriteFile(filepath.Join(root, complete), nil, 0o600)
}

// run runs a program in a folder.
func run(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // G204: constant names
	c.Dir = dir
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s failed: %w: %s", name, err, text)
	}
	return nil
}
