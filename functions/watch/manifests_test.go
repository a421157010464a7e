package watch_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/sortie-dev/sortie/functions/watch"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

// TestManifests builds the manifests like "kubectl apply -k". local/proof/kubernetes applies
// them to a real API server.
func TestManifests(t *testing.T) {
	t.Parallel()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "manifests")
	if err != nil {
		t.Fatal(err)
	}
	kinds := sets.New[string]()
	for _, r := range made.Resources() {
		kinds.Insert(r.GetKind())
		if r.GetNamespace() != "sortie" {
			t.Errorf("got %s %s in namespace %q, want sortie", r.GetKind(), r.GetName(), r.GetNamespace())
		}
		fields, err := r.Map()
		if err != nil {
			t.Fatal(err)
		}
		switch r.GetKind() {
		case "Role":
			for _, rule := range fields["rules"].([]any) {
				for _, verb := range rule.(map[string]any)["verbs"].([]any) {
					if verb != "list" && verb != "watch" {
						t.Errorf("got the right to %s, want only to list and watch", verb)
					}
				}
			}
		case "ConfigMap":
			var environ []string
			known := setting.Names(watch.Documented())
			for name, value := range fields["data"].(map[string]any) {
				environ = append(environ, name+"="+value.(string))
				if !slices.Contains(known, name) {
					t.Errorf("got the variable %s, want one of %s", name, strings.Join(known, ", "))
				}
			}
			if _, err := watch.ReadSettings(environ); err != nil {
				t.Error(err)
			}
		}
	}
	if want := []string{"ConfigMap", "Deployment", "Role", "RoleBinding", "ServiceAccount"}; !slices.Equal(sets.List(kinds), want) {
		t.Errorf("got kinds %v, want %v", sets.List(kinds), want)
	}
}
