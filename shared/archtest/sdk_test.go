package archtest

import (
	"crypto/sha256"
	"encoding/hex"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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

// ownRequests lists the files of the command line that create requests without the Go client,
// with their receivers, which are not the API.
var ownRequests = map[string]string{
	"local/sortie/client/output.go":         "an object store, after a redirect",
	"local/sortie/command/events_stream.go": "the address of a key set that the user names",
	"local/sortie/stage/doctor/call.go":     "AWS",
	"local/sortie/stage/doctor/fly.go":      "Fly.io",
	"local/sortie/stage/doctor/address.go":  "a deployed address, for its health",
}

// TestCommandLineUsesTheSDK checks that the command line creates its requests of the API with
// the Go client.
func TestCommandLineUsesTheSDK(t *testing.T) {
	t.Parallel()
	found, uses := map[string]bool{}, false
	for _, s := range sources(t) {
		if s.Test() || !strings.HasPrefix(s.Path, "local/sortie/") {
			continue
		}
		uses = uses || s.Folder() == "local/sortie/client" && slices.Contains(s.Imports(), "shared/sdk/go/client")
		ast.Inspect(s.File, func(n ast.Node) bool {
			name, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, _ := name.X.(*ast.Ident)
			creates := []string{"NewRequest", "NewRequestWithContext", "Get", "Head", "Post", "PostForm", "DefaultClient"}
			if of == nil || of.Name != "http" || !slices.Contains(creates, name.Sel.Name) {
				return true
			}
			if found[s.Path] = true; ownRequests[s.Path] == "" {
				t.Errorf("%s: got http.%s, want a request of shared/sdk/go/client, or the receiver in ownRequests", s.Line(n), name.Sel.Name)
			}
			return true
		})
	}
	for file := range ownRequests {
		if !found[file] {
			t.Errorf("%s: got no request, want ownRequests without it", file)
		}
	}
	if !uses {
		t.Error("local/sortie/client does not import shared/sdk/go/client")
	}
}
