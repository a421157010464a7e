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

// program is a program of the control plane: its name and its package.
type program struct{ name, path string }

var programs = []program{
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)`)

var building sync.Mutex

// Build returns the folder with the programs of the control plane. It builds those that
// are missing, with the module in the folder controlplane, and reports each build to say.
// cache is the folder for caches, os.UserCacheDir.
func Build(ctx context.Context, controlplane, cache string, say func(string)) (string, error) {
	lock, err := os.ReadFile(filepath.Join(controlplane, "go.sum")) //nolint:gosec // G304: the caller's own folder
	if err != nil {
		return "", fmt.Errorf("cannot read the lock file of the control plane: %w", err)
	}
	module, err := os.ReadFile(filepath.Join(controlplane, "go.mod")) //nolint:gosec // G304: the caller's own folder
	if err != nil {
		return "", fmt.Errorf("cannot read the module of the control plane: %w", err)
	}
	version := kubernetesVersion.FindStringSubmatch(string(module))
	if version == nil {
		return "", errors.New("controlplane/go.mod: no version of k8s.io/kubernetes, want a requirement of it")
	}
	key := sha256.Sum256(append(module, lock...))
	folder := filepath.Join(cache, "sortie", "kubernetes", hex.EncodeToString(key[:8]))
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // G301: programs, no secrets
		return "", fmt.Errorf("cannot create the cache: %w", err)
	}
	// Without its version the API server cannot parse the versions of its features.
	flags := fmt.Sprintf("-s -w -X k8s.io/component-base/version.gitVersion=v%s.%s.%s -X k8s.io/component-base/version.gitMajor=%[1]s -X k8s.io/component-base/version.gitMinor=%[2]s",
		version[1], version[2], version[3])
	building.Lock() // the tests of a process build once; another process builds its own
	defer building.Unlock()
	for _, p := range programs {
		target := filepath.Join(folder, p.name)
		if _, err := os.Stat(target); err == nil { //nolint:gosec // G703: the caller's own cache
			continue
		}
		made := fmt.Sprintf("%s.%d.new", target, os.Getpid())
		say("building " + p.name + " (minutes, once)")
		build := exec.CommandContext(ctx, "env", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "go", "build", "-trimpath", "-ldflags", flags, "-o", made, p.path) //nolint:gosec // G204: constants
		build.Dir = controlplane
		if output, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("cannot build %s: %w: %s", p.name, err, strings.TrimSpace(string(output)))
		}
		if err := os.Rename(made, target); err != nil { //nolint:gosec // G703: the caller's own cache
			return "", fmt.Errorf("cannot store %s: %w", p.name, err)
		}
	}
	return folder, nil
}
