//go:build kubernetes

package kubernetes_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clients "k8s.io/client-go/kubernetes"

	"github.com/sortie-dev/sortie/local/proof/kubernetes"
	"github.com/sortie-dev/sortie/local/proof/kubernetes/node"
	"github.com/sortie-dev/sortie/local/proof/runners"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/wrap"
)

// pause is the image of each pod's sandbox.
const pause = "registry.example.org/pause:v1"

// worker is a node that runs pods. Close simulates the loss of the node.
type worker interface{ Close() error }

// withKubelets reports whether the variable NODE selects nodes with a kubelet.
func withKubelets() (bool, error) {
	switch kind := os.Getenv("NODE"); kind {
	case "", "process":
		return false, nil
	case "kubelet":
		return true, nil
	default:
		return false, fmt.Errorf("NODE: unknown kind of node %q, want process or kubelet", kind)
	}
}

// checkNodes returns an error if this host cannot run the kind of nodes in NODE.
func checkNodes() error {
	kubelets, err := withKubelets()
	if err == nil && kubelets {
		err = checkKubelets()
	}
	return err
}

// startNode starts a node of the kind in NODE.
func startNode(ctx context.Context, t *testing.T, c *kubernetes.Cluster, name string) (worker, error) {
	kubelets, err := withKubelets()
	switch {
	case err != nil:
		return nil, err
	case kubelets:
		return startKubelet(ctx, t, c, name)
	}
	return startProcesses(ctx, c, name)
}

// folder returns a temporary folder that tests and the programs of pods can access.
func folder(t *testing.T) string {
	t.Helper()
	if kubelets, err := withKubelets(); err == nil && kubelets {
		return sharedFolder(t)
	}
	return t.TempDir()
}

// commands maps images to commands. The arguments are the paths of the programs in the image.
func commands(self, wrapper, program, broken string) map[string][]string {
	return map[string][]string{
		image: {self, "program"}, shell: {"/bin/sh", "-c"}, wrapped: {wrapper, "--", "/bin/sh", "-c"},
		runners.Image: {wrapper, "--", program}, runners.Plain: {program}, runners.Broken: {wrapper, "--", broken},
		pause: {"/bin/busybox", "sleep", "1000000000"},
	}
}

// startProcesses starts a node whose containers are processes.
func startProcesses(ctx context.Context, c *kubernetes.Cluster, name string) (worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	client, err := unlimited(c.Config)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte(runners.BrokenProgram), 0o700); err != nil { //nolint:gosec // G306: a program
		return nil, err
	}
	return node.Start(ctx, node.Config{
		Client: client, Name: name, Dir: dir, Path: os.Getenv("PATH"), Now: time.Now(), Log: slog.New(slog.DiscardHandler),
		Images: map[string][]string{
			image: {self, "program"}, shell: {"/bin/sh", "-c"}, wrapped: {self, wrap.Command, "--", "/bin/sh", "-c"},
			runners.Image: {self, wrap.Command, "--", self, jobProgram}, runners.Plain: {self, jobProgram}, runners.Broken: {self, wrap.Command, "--", broken},
		},
	})
}

// shrink makes the API server reduce the CPU requests of pods, and returns when that takes
// effect. A kubelet offers only the cores of this host, and the tests run many small programs
// concurrently.
func shrink(ctx context.Context, admin clients.Interface) error {
	const name, cpu = "small", "5m"
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
			}},
		}}},
		MatchConditions: []admissionv1.MatchCondition{{Name: "requests", Expression: `has(object.spec.containers[0].resources.requests) && "cpu" in object.spec.containers[0].resources.requests`}},
		FailurePolicy:   new(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
			Expression: `[JSONPatch{op: "replace", path: "/spec/containers/0/resources/requests/cpu", value: "` + cpu + `"}]`,
		}}},
	}}
	policies := admin.AdmissionregistrationV1()
	if _, err := policies.MutatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{}); err == nil {
		return nil
	}
	if _, err := policies.MutatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	if _, err := policies.MutatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: name, Image: image, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
	}}}}
	often := time.NewTicker(50 * time.Millisecond)
	defer often.Stop()
	for {
		made, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && made.Spec.Containers[0].Resources.Requests.Cpu().String() == cpu {
			return nil
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			return fmt.Errorf("the requests of pods are not reduced: %w", ctx.Err())
		}
	}
}
