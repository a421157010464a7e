package archtest

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestOneVersion checks that the API, the SDKs and the documents have one version, and that a
// tag of a release names it. Programs and packages take it from the same constant.
func TestOneVersion(t *testing.T) {
	t.Parallel()
	files := trackedText(t, ".yaml", ".go", ".py", ".json", ".toml", ".lock", ".md", "Dockerfile")
	for name, pattern := range map[string]string{
		"shared/wire/contract/openapi.yaml":        `(?m)^  version: "(.*)"$`,
		"shared/sdk/go/client/config.go":           `const Version = "(.*)"`,
		"shared/sdk/python/src/sortie/__init__.py": `(?m)^__version__ = "(.*)"$`,
		"shared/sdk/typescript/package.json":       `(?m)^  "version": "(.*)",$`,
		"shared/sdk/typescript/package-lock.json":  `(?m)^ {2,6}"version": "(.*)",\n\s*"(?:lockfileVersion|license)"`,
		"shared/sdk/rust/Cargo.toml":               `(?m)^version = "(.*)"$`,
		"shared/sdk/rust/Cargo.lock":               `name = "sortie-worker"\nversion = "(.*)"`,
		"local/sortie/Dockerfile":                  `image.version="(.*)"`,
		"shared/sdk/go/sortie-exec/Dockerfile":     `image.version="(.*)"`,
		"local/sortie/compose.yaml":                `image: sortie:(.*)`,
		"shared/sdk/go/worker/README.md":           `github.com/sortie-dev/sortie@v([0-9.]+) `,
		"shared/sdk/typescript/README.md":          `sortie-sdk-([0-9.]+)\.tgz`,
		"CHANGELOG.md":                             `(?m)^## ([0-9.]+)`,
		"README.md":                                `(?m)^Version ([0-9.]+),`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(files[name])
		if found == nil || found[1] != contract.APIVersion {
			t.Errorf("%s: got the version %q, want %s", name, found, contract.APIVersion)
		}
	}
	list := exec.CommandContext(t.Context(), "git", "tag", "--points-at", "HEAD", "v*")
	list.Dir = root(t)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	if tag := strings.TrimSpace(string(out)); tag != "" && tag != "v"+contract.APIVersion {
		t.Errorf("got the tag %s of this commit, want v%s", tag, contract.APIVersion)
	}
}
