package archtest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSDKsAreFresh checks the digests that each generator of an SDK writes: those of the OpenAPI
// document, of the generator's sources and of the generated files. The generators need tools of
// their languages; "make test-sdks" runs them.
func TestSDKsAreFresh(t *testing.T) {
	t.Parallel()
	const document = "shared/wire/contract/openapi.yaml"
	banner := regexp.MustCompile(`(?m)\A(?://|#) (?:Code generated|Generated) by`)
	listed := map[string]bool{}
	for language, name := range map[string]string{
		"python":     "tools/generated.sum",
		"rust":       "tests/generated/generated.sum",
		"typescript": "testdata/generated.sum",
	} {
		folder := path.Join("shared/sdk", language)
		command := "make generate-sdks LANG=" + language
		sums, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(path.Join(folder, name))))
		if err != nil {
			t.Fatalf("%v; write it with: %s", err, command)
		}
		for line := range strings.Lines(string(sums)) {
			want, file, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
			if !ok {
				t.Fatalf("%s: %s: got line %q, want a digest and a path", folder, name, line)
			}
			file = path.Join(folder, file)
			listed[file] = true
			text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(file)))
			if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != want {
				t.Errorf("%s: %s has changed since its files were generated (%v); generate them with: %s", language, file, err, command)
			}
		}
		if !listed[document] {
			t.Errorf("%s: %s does not list %s", folder, name, document)
		}
		delete(listed, document)
	}
	for file, text := range trackedText(t, ".py", ".rs", ".ts") {
		if strings.HasPrefix(file, "shared/sdk/") && banner.MatchString(text) && !listed[file] {
			t.Errorf("%s is generated, and in no generated.sum", file)
		}
	}
}
