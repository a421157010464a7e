package stack_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/template"
)

// TestOnlyCallersOfMachinesReachTheCluster checks which functions have the credentials for the
// cluster, that they may read only its secret, and that the output lists their roles.
func TestOnlyCallersOfMachinesReachTheCluster(t *testing.T) {
	t.Parallel()
	full := everything(t)
	callers := []string{"launch", "supervise", "sweep", "tasks", "terminate"}
	for _, function := range functionsOf(full) {
		variables := functionOf(t, full, function).Variables()
		_, reads := variables["SORTIE_SECRET_KUBERNETES"]
		if want := slices.Contains(callers, function); reads != want {
			t.Errorf("%s: got the secret of the cluster %v, want %v", function, reads, want)
		}
		if want := slices.Contains(callers, function) || function == "control"; want != (variables["SORTIE_KUBERNETES_CLUSTER"] == "east") {
			t.Errorf("%s: got cluster %v, want one %v", function, variables["SORTIE_KUBERNETES_CLUSTER"], want)
		}
		if reads && variables["SORTIE_KUBERNETES_NAMESPACES"] != "runs,more" {
			t.Errorf("%s: got namespaces %v, want runs,more", function, variables["SORTIE_KUBERNETES_NAMESPACES"])
		}
	}
	named(t, full, "SecretsManager::Secret", "SecretKubernetes")
	for _, s := range statements(full) {
		for _, action := range s.actions {
			if strings.HasPrefix(action, "eks:") || strings.HasPrefix(action, "sts:") {
				t.Errorf("%s: got permission %s; a token of EKS needs none", s.where, action)
			}
		}
	}
	if roles := template.Flat(full.Outputs["KubernetesRoles"].Value); len(strings.Fields(roles)) != len(callers) || !strings.Contains(roles, "RoleSweep") {
		t.Errorf("got roles %q, want those of %v", roles, callers)
	}
	if got := template.Flat(full.Outputs["KubernetesOrchestrator"].Value); got != "111122223333.eu-west-1.dev" {
		t.Errorf("got label %s, want account, region and stage", got)
	}

	plain := deployed(t)
	for _, function := range functionsOf(plain) {
		for name := range functionOf(t, plain, function).Variables() {
			if strings.Contains(name, "KUBERNETES") {
				t.Errorf("%s: got %s on a stage without a cluster", function, name)
			}
		}
	}
	for _, s := range plain.Of("SecretsManager::Secret") {
		if strings.Contains(s.ID, "Kubernetes") {
			t.Error("got a secret for a cluster that the stage does not have")
		}
	}
	if _, is := plain.Outputs["KubernetesRoles"]; is {
		t.Error("got roles of a cluster that the stage does not have")
	}
}
