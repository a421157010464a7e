package stack_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestClusterThatDoesNotAnswer starts a stack with an unreachable cluster.
func TestClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	g := start(t, served{Settings: map[string]string{"SORTIE_KUBERNETES_CONFIG": file, "SORTIE_KUBERNETES_CLUSTER": "east"}})
	const job = `{"image": "localhost/a:1", "pool": "pods", "podSpec": `
	for _, row := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/v1/pools/pods", `{"limit": 0, "runner": "kubernetes", "settings": {"cluster": "west"}}`, http.StatusUnprocessableEntity, "want east"},
		{"/v1/pools/pods", `{"limit": 0, "runner": "kubernetes", "settings": {"cluster": "east", "namespace": "sortie"}}`, http.StatusCreated, "kubernetes"},
		{"/v1/pools/pods", `{"limit": 0, "runner": "kubernetes", "settings": {"podDefaults": {"hostNetwork": true}}}`, http.StatusUnprocessableEntity, `"field":"settings.podDefaults.hostNetwork"`},
		{"/v1/jobs/a", job + `{"hostNetwork": true}}`, http.StatusUnprocessableEntity, "podSpec.hostNetwork: not allowed"},
		{"/v1/jobs/a", job + `{"volumes": [{"name": "v", "secret": {"secretName": "others"}}]}}`, http.StatusUnprocessableEntity, `"field":"podSpec.volumes.0.secret"`},
		{"/v1/jobs/a", job + `{"containers": [{"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]}}`, http.StatusUnprocessableEntity, "podSpec.containers.0.securityContext.capabilities.add: not allowed"},
		{"/v1/jobs/a", job + `{"nodeSelectors": {}}}`, http.StatusUnprocessableEntity, `unknown field \"nodeSelectors\"`},
		{"/v1/jobs/a", job + `{"nodeSelector": {"disk": "fast"}}}`, http.StatusCreated, "nodeSelector"},
	} {
		if got := g.Call(http.MethodPut, row.path, row.body); got.Status != row.status || !strings.Contains(string(got.Body), row.says) {
			t.Errorf("PUT %s %s: got %d %s, want %d with %q", row.path, row.body, got.Status, got.Body, row.status, row.says)
		}
	}
	if got := g.End(g.post(contract.ExportOptions{})); got.Status != contract.StatusSuccess {
		t.Errorf("got %+v in another pool, want success", got)
	}
}
