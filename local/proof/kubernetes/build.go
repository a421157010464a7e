package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// program is a Go program to build.
type program struct{ name, path string }

// programs are the programs of the control plane.
var programs = []program{
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
}

// kubelet is the node agent; it is in the module of the control plane.
var kubelet = []program{{"kubelet", "k8s.io/kubernetes/cmd/kubelet"}}

// containerd are the programs of a node's container runtime.
var containerd = []program{
	{"containerd", "github.com/containerd/containerd/v2/cmd/containerd"},
	{"containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
}

// withoutSnapshotters lists build tags that leave out snapshotters. They are unused or need C
// libraries.
const withoutSnapshotters = "no_btrfs no_zfs no_devmapper"

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)`)

var building sync.Mutex

// Build returns the folder with the programs of the control plane. It builds the missing ones
// with the module in the folder controlplane, and reports each build to say. cache is the
// folder for caches, os.UserCacheDir.
func Build(ctx context.Context, controlplane, cache string, say func(string)) (string, error) {
	return buildKubernetes(ctx, controlplane, cache, programs, say)
}

// BuildNode returns the folders with the programs of package kubelet and builds them like
// Build. The kubelet comes from the module in the folder controlplane, containerd and its shim
// from the module in the folder runtime.
func BuildNode(ctx context.Context, controlplane, runtime, cache string, say func(string)) ([]string, error) {
	agent, err := buildKubernetes(ctx, controlplane, cache, kubelet, say)
	if err != nil {
		return nil, err
	}
	engine, err := build(ctx, runtime, cache, "-s -w", containerd, say)
	return []string{agent, engine}, err
}

// buildKubernetes builds programs of Kubernetes and sets their version to the version of their
// module. Without a version they cannot parse the versions of their features.
func buildKubernetes(ctx context.Context, folder, cache string, wanted []program, say func(string)) (string, error) {
	module, err := os.ReadFile(filepath.Join(folder, "go.mod")) //nolint:gosec // G304: the caller's own folder
	if err != nil {
		return "", fmt.Errorf("cannot read the module of the control plane: %w", err)
	}
	version := kubernetesVersion.FindStringSubmatch(string(module))
	if version == nil {
		return "", errors.New("controlplane/go.mod: no version of k8s.io/kubernetes, want a requirement of it")
	}
	const at = "-X k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w "+at+"gitVersion=v%s.%s.%s "+at+"gitMajor=%[1]s "+at+"gitMinor=%[2]s", version[1], version[2], version[3])
	return build(ctx, folder, cache, flags, wanted, say)
}

// build builds the programs of a module that the cache does not have. The cache has one folder
// for each state of go.mod and go.sum.
func build(ctx context.Context, module, cache, flags string, wanted []program, say func(string)) (string, error) {
	var state []byte
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(module, name)) //nolint:gosec // G304: the caller's own folder
		if err != nil {
			return "", fmt.Errorf("cannot read the lock file of %s: %w", module, err)
		}
		state = append(state, text...)
	}
	key := sha256.Sum256(state)
	folder := filepath.Join(cache, "sortie", "kubernetes", hex.EncodeToString(key[:8]))
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // G301: programs, no secrets
		return "", fmt.Errorf("cannot create the cache: %w", err)
	}
	building.Lock() // build once for all tests of a process; another process builds its own
	defer building.Unlock()
	for _, p := range wanted {
		target := filepath.Join(folder, p.name)
		if _, err := os.Stat(target); err == nil { //nolint:gosec // G703: the caller's own cache
			continue
		}
		made := fmt.Sprintf("%s.%d.new", target, os.Getpid())
		say("building " + p.name + " (minutes, once)")
		compile := exec.CommandContext(ctx, "env", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "go", "build", "-trimpath", "-tags", withoutSnapshotters, "-ldflags", flags, "-o", made, p.path) //nolint:gosec // G204: constants
		compile.Dir = module
		if output, err := compile.CombinedOutput(); err != nil {
			return "", fmt.Errorf("cannot build %s: %w: %s", p.name, err, strings.TrimSpace(string(output)))
		}
		if err := os.Rename(made, target); err != nil { //nolint:gosec // G703: the caller's own cache
			return "", fmt.Errorf("cannot store %s: %w", p.name, err)
		}
	}
	return folder, nil
}
