//go:build kubernetes

package kubernetes_test

import (
	"context"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clients "k8s.io/client-go/kubernetes"

	"github.com/sortie-dev/sortie/local/proof/runners"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestJobFiles runs the job files of package runners as pods, with and without sortie-exec in
// their images.
func TestJobFiles(t *testing.T) {
	t.Parallel()
	c, admin := cluster(t)
	for name, plain := range map[string]bool{"wrapped": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &system{admin: admin, namespace: namespace(t, admin, "files")}
			differs := map[string]runners.Difference{}
			if plain {
				differs = runners.WithoutWrapper()
			}
			maps.Copy(differs, ofNode(plain))
			runners.Run(t, runners.Platform{
				Runner: "kubernetes", Plain: plain, Differs: differs,
				Given: stacktest.Config{Settings: map[string]string{"SORTIE_KUBERNETES_CONFIG": s.authorize(t, c), "SORTIE_KUBERNETES_NAMESPACES": s.namespace}},
				Left: func(ctx context.Context, _ stack.Addresses, task string) ([]string, error) {
					return objectsOf(ctx, admin, s.namespace, task)
				},
			})
		})
	}
}

// ofNode returns the expected differences of the node kind.
func ofNode(plain bool) map[string]runners.Difference {
	if kubelets, err := withKubelets(); err != nil || !kubelets {
		differs := map[string]runners.Difference{"out-of-memory": {Reason: "the containers of the node are processes of the host, without a memory limit of their own"}}
		jobs := []string{"daemons-orphaned"}
		if plain {
			jobs = append(jobs, "daemons", "daemons-failed", "daemons-cancelled")
		}
		for _, job := range jobs {
			differs[job] = runners.Difference{Reason: "the containers of the node are processes of the host, and do not end those that a program without a wrapper leaves; a kubelet does"}
		}
		return differs
	}
	if !plain {
		return map[string]runners.Difference{"daemons-orphaned": {Reason: runners.FirstProcess}}
	}
	return map[string]runners.Difference{
		"exit-code": {Reason: "the lines of the two streams are in any order in the log of the node; TestJobs checks the code"},
		"killed":    {Reason: runners.FirstProcess},
		"out-of-memory": {Reason: "the node reports that memory was exhausted", End: &runners.End{
			Exit: 1, State: "Failed", Code: "OUT_OF_MEMORY", Attempt: 1, Program: &contract.Exit{Code: 137, Signal: 9, OOM: true}, Stdout: "hello\n",
		}},
	}
}

// objectsOf returns the Jobs, the pods and the Secrets of a run.
func objectsOf(ctx context.Context, admin clients.Interface, namespace, run string) (found []string, err error) {
	add := func(kind string, about metav1.ObjectMeta) {
		if about.Annotations["run-id"] == run {
			found = append(found, kind+" "+about.Name)
		}
	}
	jobs, err := admin.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range jobs.Items {
		add("Job", jobs.Items[i].ObjectMeta)
	}
	pods, err := admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		add("pod", pods.Items[i].ObjectMeta)
	}
	secrets, err := admin.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		add("Secret", secrets.Items[i].ObjectMeta)
	}
	return found, nil
}
