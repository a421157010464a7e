package stack_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/roles/deployment"
)

// TestDeploymentIsFresh compares the variables, roles and routes with which the tests of
// local/proof/roles run the functions with the template. Rewrite them with: go test ./stack
// -run Fresh -rewrite.
func TestDeploymentIsFresh(t *testing.T) {
	t.Parallel()
	made, err := deployment.Of(synth(t, map[string]any{
		"account": awsfake.Account, "region": awsfake.Region, "canary": "01K9XVBAQZF9EHDRXGBEADTZYY",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(made); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("..", "..", "local", "proof", "roles", "deployment", "deployment.json")
	if *rewrite {
		if err := os.WriteFile(name, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), text.String()); diff != "" {
		t.Errorf("%s is old; read the difference, then rewrite it with -rewrite:\n%s", name, diff)
	}
}
