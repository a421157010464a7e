//go:build kubernetes

package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	clients "k8s.io/client-go/kubernetes"
)

// kubeconform validates manifests with JSON schemas.
const kubeconform = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"

// schemas writes a JSON schema for each kind of the API server into a folder. It derives them
// from the server's OpenAPI document. They refuse fields that the API server does not know.
func schemas(t *testing.T, admin clients.Interface, dir string) {
	t.Helper()
	text, err := admin.Discovery().RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", "application/json").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for _, d := range document.Definitions {
		if _, open := d["additionalProperties"]; d["properties"] != nil && !open {
			d["additionalProperties"] = false
		}
		if d["format"] == "int-or-string" {
			delete(d, "type")
			d["type"] = []string{"integer", "string"}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "all.json"), encode(t, document), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, d := range document.Definitions {
		kinds, _ := d["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 { // types of all groups, such as DeleteOptions
			continue
		}
		of := kinds[0].(map[string]any)
		file := strings.ToLower(of["kind"].(string)) + "-" + of["version"].(string)
		if group, _, _ := strings.Cut(of["group"].(string), "."); group != "" {
			file = strings.ToLower(of["kind"].(string)) + "-" + group + "-" + of["version"].(string)
		}
		schema := map[string]any{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "all.json#/definitions/" + name}
		if err := os.WriteFile(filepath.Join(dir, file+".json"), encode(t, schema), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// conform validates a manifest. It returns the output of kubeconform for an invalid one, or "".
func conform(t *testing.T, dir string, manifest []byte) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "run", kubeconform, "-strict", "-summary", "-schema-location", filepath.Join(dir, "{{.ResourceKind}}{{.KindSuffix}}.json"), "-")
	c.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "CGO_ENABLED=0")
	c.Stdin = bytes.NewReader(manifest)
	text, err := c.CombinedOutput()
	switch {
	case err != nil:
		return string(text)
	case !strings.Contains(string(text), "Invalid: 0, Errors: 0, Skipped: 0"):
		t.Fatalf("got %s, want a summary", text)
	}
	return ""
}

// TestManifestsConform validates the manifests of the agent and the rights of Sortie with
// kubeconform and the schemas of the API server that the tests start.
func TestManifestsConform(t *testing.T) {
	t.Parallel()
	_, admin := cluster(t)
	dir := t.TempDir()
	schemas(t, admin, dir)
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.FromSlash("../../../functions/watch/manifests"))
	if err != nil {
		t.Fatal(err)
	}
	agent, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	rights, err := os.ReadFile(filepath.FromSlash("../../../shared/adapter/kubernetes/rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, manifest := range map[string][]byte{"functions/watch/manifests": agent, "rbac.yaml": rights} {
		if said := conform(t, dir, manifest); said != "" {
			t.Errorf("%s: %s", name, said)
		}
	}
	for broken, want := range map[string]string{"replicas: 1": "replicas: many", "readinessProbe:": "readinesProbe:"} {
		if said := conform(t, dir, bytes.Replace(agent, []byte(broken), []byte(want), 1)); !strings.Contains(said, "Invalid: 1") {
			t.Errorf("%s: got %q, want it refused", want, said)
		}
	}
}
