//go:build kubernetes

package kubernetes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// secondTime returns a script that runs until it is stopped. If the file exists, the script
// succeeds at once.
func secondTime(file string) string {
	return fmt.Sprintf("[ -e %s ] && exit 0; %s", file, forever)
}

// TestInterference ends pods of runs from outside of Sortie. Each run gets another machine. A
// requested end, whose exit the finalizer keeps, uses no retry.
func TestInterference(t *testing.T) {
	t.Parallel()
	c, admin := cluster(t)
	s := serve(t, c, admin)
	again := filepath.Join(folder(t), "again")
	const once = `, "retryConfig": {"maxRetries": 0, "initialDelay": "1s"}`
	// Sortie waits up to the start limit for a machine that the cluster does not know.
	const lost = `, "retryConfig": {"maxRetries": 1, "initialDelay": "1s"}, "policy": {"startTimeoutSeconds": 10}`
	rows := []struct {
		id, fields string
		interfere  func(pod *corev1.Pod)
	}{
		{"evicted", once, func(pod *corev1.Pod) {
			s.ok(s.admin.CoreV1().Pods(pod.Namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}))
		}},
		{"deleted", once, func(pod *corev1.Pod) {
			s.ok(s.admin.BatchV1().Jobs(pod.Namespace).Delete(t.Context(), pod.Labels["batch.kubernetes.io/job-name"], metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
		}},
		{"removed", lost, func(pod *corev1.Pod) {
			s.ok(s.admin.BatchV1().Jobs(pod.Namespace).Delete(t.Context(), pod.Labels["batch.kubernetes.io/job-name"], metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}))
			_, err := s.admin.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
			s.ok(err)
			s.ok(s.admin.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		}},
	}
	tasks := map[string]string{}
	for _, row := range rows {
		s.define(row.id, shell, secondTime(again), row.fields)
		tasks[row.id] = s.run(row.id)
	}
	machines := map[string]string{}
	for _, row := range rows {
		s.Running(tasks[row.id])
		machines[row.id] = outside.Get[contract.Task](s.Client, "/v1/tasks/"+tasks[row.id]).Machine.ID
	}
	s.ok(os.WriteFile(again, nil, 0o600))
	for _, row := range rows {
		row.interfere(s.pod(tasks[row.id]))
	}
	for _, row := range rows {
		if got := s.End(tasks[row.id]); got.State != "Completed" || got.Attempt != 2 || got.MachineID == machines[row.id] {
			t.Errorf("%s: got %+v, want a second attempt on another machine that succeeds", row.id, got)
		}
	}
	pods, err := s.admin.CoreV1().Pods(s.namespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	s.ok(err)
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			t.Errorf("got pod %s in phase %s after the runs, want none that runs", p.Name, p.Status.Phase)
		}
	}
}

func (s *system) ok(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}
