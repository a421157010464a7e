//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie/local/proof/debian"
)

// packages are the packages of Debian 12 that the service needs beyond a minimal system. runc
// runs containers with cgroups of both versions at once; crun does not.
var packages = []string{
	"podman", "conmon", "runc", "containernetworking-plugins", "iptables", "libip6tc2", "libnfnetlink0", "libnetfilter-conntrack3",
	"libnftnl11", "golang-github-containers-image", "golang-github-containers-common", "libgpgme11", "libassuan0", "libsubid4", "libseccomp2",
}

// fetch returns a folder with the files of the packages. It downloads them if the cache does
// not have them.
func fetch(ctx context.Context) (string, error) {
	say := func(s string) { fmt.Fprintln(os.Stderr, "podman: "+s) }
	root, err := debian.Fetch(ctx, "podman-debian-12", packages, say, links)
	if err != nil {
		return "", fmt.Errorf("podman is not in the PATH, and it cannot be fetched: %w; install Podman, or set DOCKER_HOST to an engine", err)
	}
	return root, nil
}

// links creates the links that Debian's alternatives would create.
func links(root string) error {
	for _, name := range []string{"iptables", "ip6tables"} {
		link := filepath.Join(root, "usr", "sbin", name)
		if err := os.Symlink("xtables-nft-multi", link); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
