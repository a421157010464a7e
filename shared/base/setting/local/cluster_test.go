package local_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/base/setting/local"
)

func TestRead(t *testing.T) {
	t.Parallel()
	const prefix = "SORTIE_KUBERNETES_"
	for name, row := range map[string]struct {
		given map[string]string
		want  local.Cluster
		path  string
	}{
		"no cluster": {},
		"file": {
			given: map[string]string{"CONFIG": "/k"}, path: "/k",
			want: local.Cluster{File: "/k", Cluster: "local", Namespaces: []string{"sortie"}},
		},
		"own cluster": {
			given: map[string]string{"CONFIG": "in-cluster", "CLUSTER": "east", "NAMESPACES": "b,a"},
			want:  local.Cluster{File: local.InCluster, Cluster: "east", Namespaces: []string{"b", "a"}},
		},
		"context": {
			given: map[string]string{"CONFIG": "k", "CONTEXT": "kind-a"}, path: "k",
			want: local.Cluster{File: "k", Context: "kind-a", Cluster: "local", Namespaces: []string{"sortie"}},
		},
	} {
		env := map[string]string{}
		for key, value := range row.given {
			env[prefix+key] = value
		}
		got, err := local.ReadCluster(setting.Map(env))
		if diff := cmp.Diff(row.want, got); err != nil || diff != "" || got.Kubeconfig() != row.path {
			t.Errorf("%s: got error %v and path %q (-want +got):\n%s", name, err, got.Kubeconfig(), diff)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		given map[string]string
		want  string
	}{
		{map[string]string{"SORTIE_KUBERNETES_NAMESPACES": "a"}, "SORTIE_KUBERNETES_NAMESPACES: there is no cluster, want SORTIE_KUBERNETES_CONFIG too"},
		{map[string]string{"SORTIE_KUBERNETES_CONFIG": "k", "SORTIE_KUBERNETES_NAMESPACES": "a,B"}, `SORTIE_KUBERNETES_NAMESPACES: malformed namespace "B"`},
		{map[string]string{"SORTIE_KUBERNETES_CONFIG": "k", "SORTIE_KUBERNETES_NAMESPACES": "a,a"}, `"a" occurs twice`},
		{map[string]string{"SORTIE_KUBERNETES_CONFIG": "k", "SORTIE_KUBERNETES_CLUSTER": "Ä"}, "SORTIE_KUBERNETES_CLUSTER"},
		{map[string]string{"SORTIE_KUBERNETES_CONFIG": "in-cluster", "SORTIE_KUBERNETES_CONTEXT": "a"}, "in-cluster has no contexts"},
	} {
		if _, err := local.ReadCluster(setting.Map(row.given)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v: got error %v, want %q", row.given, err, row.want)
		}
	}
}
