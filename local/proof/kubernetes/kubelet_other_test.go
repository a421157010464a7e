//go:build kubernetes && !linux

package kubernetes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/kubernetes"
)

const nodeProgram = "node-with-a-kubelet"

func supervise([]string) int { return 1 }

var errLinux = errors.New("nodes with a kubelet need Linux")

func checkKubelets() error { return errLinux }

func startKubelet(context.Context, *testing.T, *kubernetes.Cluster, string) (worker, error) {
	return nil, errLinux
}

func sharedFolder(t *testing.T) string { return t.TempDir() }

func endFleet() error { return nil }
