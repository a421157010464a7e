//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// packages are those of Debian 12 that the service needs and a minimal system does not
// have. runc runs containers with cgroups of both versions at once, crun does not.
var packages = []string{
	"podman", "conmon", "runc", "containernetworking-plugins", "iptables", "libip6tc2", "libnfnetlink0", "libnetfilter-conntrack3",
	"libnftnl11", "golang-github-containers-image", "golang-github-containers-common", "libgpgme11", "libassuan0", "libsubid4", "libseccomp2",
}

// fetch returns a folder with the files of the packages, which it fetches if the cache
// does not have them.
func fetch(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "sortie", "podman-debian-12")
	if _, err := os.Stat(filepath.Join(root, "complete")); err == nil {
		return root, nil
	}
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("podman is not in the PATH, and %s is missing: install Podman, or set DOCKER_HOST to an engine", tool)
		}
	}
	debs, err := os.MkdirTemp("", "sortie-podman-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(debs) }()        // downloads alone
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // G301: programs
		return "", err
	}
	fmt.Fprintln(os.Stderr, "podman: fetching Podman's packages into", root)
	if err := tool(ctx, debs, "apt-get", append([]string{"download", "-q", "-o", "APT::Sandbox::User=root"}, packages...)...); err != nil {
		return "", fmt.Errorf("%w; run apt-get update, or install Podman, or set DOCKER_HOST to an engine", err)
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil || len(files) < len(packages) {
		return "", errors.Join(err, fmt.Errorf("got %d packages, want %d", len(files), len(packages)))
	}
	for _, file := range files {
		if err := tool(ctx, debs, "dpkg-deb", "-x", file, root); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"iptables", "ip6tables"} { // which the package's alternatives would make
		link := filepath.Join(root, "usr", "sbin", name)
		if err := os.Symlink("xtables-nft-multi", link); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return root, os.WriteFile(filepath.Join(root, "complete"), nil, 0o600)
}

// tool runs a program in a folder.
func tool(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // G204: constant names
	c.Dir = dir
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s failed: %w: %s", name, err, text)
	}
	return nil
}
