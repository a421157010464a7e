//go:build kubernetes

package kubernetes_test

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// suspendJobs makes the API server suspend each new Job of the namespace, like a queue
// controller of the cluster.
func (s *system) suspendJobs() {
	s.T.Helper()
	selected := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}}
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: selected, ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{
				APIGroups: []string{"batch"}, APIVersions: []string{"v1"}, Resources: []string{"jobs"},
			}},
		}}},
		FailurePolicy: new(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{
			Expression: `Object{spec: Object.spec{suspend: true}}`,
		}}},
	}}
	_, err := s.admin.AdmissionregistrationV1().MutatingAdmissionPolicies().Create(s.T.Context(), policy, metav1.CreateOptions{})
	s.ok(err)
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: s.namespace}}
	_, err = s.admin.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Create(s.T.Context(), binding, metav1.CreateOptions{})
	s.ok(err)
}

// TestSuspendedJobWaitsForTheCluster runs a job while another controller suspends and resumes
// its Job.
func TestSuspendedJobWaitsForTheCluster(t *testing.T) {
	t.Parallel()
	c, admin := cluster(t)
	s := serve(t, c, admin)
	s.suspendJobs()
	probe := stage{}
	s.define("queued", shell, "echo hello", "")
	var task string
	var held contract.Explanation
	probe.await(t, "run that waits for the cluster", func() bool { // the policy takes effect a moment after its creation
		if task == "" {
			task = s.run("queued")
		}
		held = outside.Get[contract.Explanation](s.Client, "/v1/runs/"+task+"/explain")
		if held.State == "Completed" {
			task = ""
		}
		return held.Reason == "waiting_for_cluster"
	})
	if !strings.Contains(held.Message, "suspended by another controller") || held.State != "ContainerCreating" {
		t.Errorf("got %s %q, want a run whose Job is suspended", held.State, held.Message)
	}
	machine := outside.Get[contract.Task](s.Client, "/v1/tasks/"+task).Machine
	name, _, _ := strings.Cut(machine.ID, ".")
	_, err := admin.BatchV1().Jobs(s.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec": {"suspend": false}}`), metav1.PatchOptions{})
	s.ok(err)
	if got := s.End(task); got.State != "Completed" || got.Attempt != 1 || !strings.Contains(s.log(task), "hello") {
		t.Errorf("got %+v, want the run in its first attempt", got)
	}
	if got := s.Call(http.MethodGet, "/v1/runs/"+task+"/explain", ""); strings.Contains(string(got.Body), "suspended") {
		t.Errorf("got %s after the end, want no word of the cluster", got.Body)
	}
}
