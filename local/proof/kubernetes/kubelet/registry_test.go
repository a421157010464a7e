//go:build linux

package kubelet_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/sortie-dev/sortie/local/proof/kubernetes/kubelet"
)

// get gets a document of the registry.
func get(t *testing.T, url string) (status int, body []byte) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if body, err = io.ReadAll(got.Body); err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, body
}

func TestRegistryServesItsImagesAlone(t *testing.T) {
	t.Parallel()
	files, err := kubelet.NewFiles(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Add("program", []byte("code")); err != nil {
		t.Fatal(err)
	}
	archive, err := files.Archive()
	if err != nil {
		t.Fatal(err)
	}
	r, err := kubelet.StartRegistry(archive, map[string][]string{"registry.example.org/program:v1": {"/program"}}, "65534:65534", "/tmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	for path, want := range map[string]int{"/v2/program/manifests/v2": 404, "/v2/other/manifests/v1": 404, "/v2/program/blobs/sha256:none": 404} {
		if status, body := get(t, r.URL+path); status != want {
			t.Errorf("%s: got %d %s, want %d", path, status, body, want)
		}
	}
	var manifest v1.Manifest
	status, text := get(t, r.URL+"/v2/program/manifests/v1?ns=registry.example.org")
	if err := json.Unmarshal(text, &manifest); err != nil || status != http.StatusOK || len(manifest.Layers) != 1 {
		t.Fatalf("got %d %s, %v, want a manifest with a layer", status, text, err)
	}
	var config v1.Image
	if _, text = get(t, r.URL+"/v2/program/blobs/"+manifest.Config.Digest.String()); json.Unmarshal(text, &config) != nil || !slices.Equal(config.Config.Entrypoint, []string{"/program"}) || config.Config.User != "65534:65534" {
		t.Errorf("got configuration %s, want the command and the user", text)
	}
	if _, layer := get(t, r.URL+"/v2/program/blobs/"+manifest.Layers[0].Digest.String()); !slices.Equal(layer, archive) {
		t.Errorf("got a layer of %d bytes, want the archive of %d", len(layer), len(archive))
	}
	if _, err := kubelet.StartRegistry(archive, map[string][]string{"program": nil}, "", ""); err == nil {
		t.Error("got no error for an image without a host, want one")
	}
}
