//go:build kubernetes

package kubernetes_test

import (
	"context"
	"hash/fnv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	adapter "github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// spread is a Runner whose launches use several namespaces, like different pools.
type spread struct {
	stage
	// full are the machines that no node of the cluster can run.
	full map[string]bool
}

func (s spread) namespaceOf(name string) string {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return s.namespaces[hash.Sum32()%2]
}

// Launch implements port.Runner.
func (s spread) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	spec.Runner, spec.Settings = platform.RunnerKubernetes, &platform.KubernetesSettings{Namespace: s.namespaceOf(spec.Name)}
	if s.full[spec.Name] {
		delete(s.full, spec.Name)
		spec.PodSpec = []byte(`{"nodeSelector": {"disk": "none"}}`)
	}
	return s.stage.Launch(ctx, spec)
}

// TestRunner runs the port's suite on the real API server.
func TestRunner(t *testing.T) {
	t.Parallel()
	cluster(t)
	kubelets, err := withKubelets()
	if err != nil {
		t.Fatal(err)
	}
	porttest.Runner(t, func(t *testing.T) porttest.RunnerHarness {
		s := spread{setup(t, func(c *adapter.Config) { c.Unschedulable = time.Millisecond }), map[string]bool{}}
		return porttest.RunnerHarness{
			Runner: s, Image: image, NoImage: noImage, KeepsGrace: kubelets,
			Unknown: port.Machine{Runner: platform.RunnerKubernetes, Cluster: "local", App: s.namespaces[0], ID: "job.0f9b6a0c-5a36-4e7e-b9f6-6f5f6f2f0a10"},
			Occupy: func(t *testing.T, name string) {
				job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
					Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "other", Image: image}},
					}},
				}}
				if _, err := s.admin.BatchV1().Jobs(s.namespaceOf(name)).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			Fault: func(_ *testing.T, name string, how porttest.RunnerFault) {
				if how == porttest.RunnerIsFull {
					s.full[name] = true
					return
				}
				s.faults.set(name, how)
			},
			FailPart: func(t *testing.T, m port.MachineStatus) {
				s.faults.cutWatches(m.App, true)
				s.await(t, "a broken watch", func() bool {
					return s.List(t.Context(), func(port.MachineStatus) bool { return true }) != nil
				})
			},
		}
	})
}

// await waits until the condition is true.
func (s stage) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	await.Until(t, what, holds)
}
