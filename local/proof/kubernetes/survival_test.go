//go:build kubernetes

package kubernetes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// change patches a node.
func (s *system) change(name, patch string) {
	s.T.Helper()
	if _, err := s.admin.CoreV1().Nodes().Patch(s.T.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.T.Fatal(err)
	}
}

// until returns a script that exits with the code when the file exists.
func until(file string, code int) string {
	return fmt.Sprintf("while ! [ -e %s ]; do sleep 0.05; done; exit %d", file, code)
}

// TestRunsSurviveFaults has its own cluster. It kills the API server and the stack during a
// run, and loses the node of another run.
func TestRunsSurviveFaults(t *testing.T) {
	t.Parallel()
	c, admin := ownCluster(t)
	s := serve(t, c, admin)
	first, err := startNode(t.Context(), t, c, "lost-1")
	if err != nil {
		t.Fatal(err)
	}
	s.change("node-1", `{"metadata": {"labels": {"disk": "slow"}}}`)
	s.change("lost-1", `{"metadata": {"labels": {"disk": "fast"}}}`)
	end := filepath.Join(folder(t), "end")
	s.define("adopted", shell, until(end, 4), `, "retryConfig": {"maxRetries": 0}, "podSpec": {"nodeSelector": {"disk": "slow"}}`)
	s.define("moved", shell, until(end, 0), `, "podSpec": {"nodeSelector": {"disk": "fast"}}`)
	adopted, moved := s.run("adopted"), s.run("moved")
	s.Running(adopted)
	s.Running(moved)

	if err := c.Kill("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.process.End(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.start(t) // the stack starts without the cluster
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}

	second, err := startNode(t.Context(), t, c, "lost-2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	s.change("lost-2", `{"metadata": {"labels": {"disk": "fast"}}}`)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	s.change("lost-1", `{"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}]}}`)
	s.Await(moved, func(got contract.Status) bool { return got.Attempt == 2 && got.State == "Running" })

	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.End(adopted); got.Attempt != 1 || !strings.Contains(got.Error, "exited with code 4") {
		t.Errorf("got %+v, want attempt 1 with the program's code", got)
	}
	if got := s.End(moved); got.State != "Completed" || got.Attempt != 2 {
		t.Errorf("got %+v, want a second attempt that succeeds", got)
	}
	live := 0
	pods, err := s.admin.CoreV1().Pods(s.namespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			live++
		}
	}
	if live > 0 {
		t.Errorf("got %d live pods after the runs, want none", live)
	}
}
