package command_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestArtifactsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return registry.Routes(s.Artifacts) })
	folder := t.TempDir()
	for name, text := range map[string]string{"page.html": "<p>", "note.json": ` {"b": 1} `} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names := strings.NewReplacer("PAGEID", digest("<p>"), "NOTEID", digest(`{"b":1}`), "DIR", folder)
	for _, step := range []struct {
		args string
		code int
		want string // in the output, or in the error message
	}{
		{"put page DIR/page.html --tag a,b --metadata {\"m\":1}", 0, "PAGEID\n"},
		{"put page DIR/page.html", 0, "PAGEID\n"},
		{"put page DIR", 1, "is not a file"},
		{"put page DIR/none", 1, "cannot read the file"},
		{"put PAGE DIR/page.html", 2, "kind"},
		{"put page DIR/page.html --type text", 2, "media type"},
		{"create note DIR/note.json", 0, "NOTEID\n"},
		{"list --kind page", 0, "page  3      "},
		{"get PAGEID", 0, "<p>"},
		{"get sha256:NOTEID", 0, `{"b":1}`},
		{"get PAGEID -o DIR/saved", 0, ""},
		{"get PAGEID -o DIR/saved", 0, ""},
		{"get NOTEID -o DIR/saved", 1, "--force"},
		{"get NOTEID -o DIR/saved --force", 0, ""},
		{"get " + strings.Repeat("0", 64) + " -o DIR/saved --force", 4, "no such artifact"},
		{"show NOTEID", 0, `{"b":1}` + "\n"},
		{"show PAGEID", 1, "sortie artifacts get"},
		{"show --json PAGEID", 0, `"media_type": "text/html; charset=utf-8"`},
	} {
		args := names.Replace(step.args)
		got := sortie(t, map[string]string{"SORTIE_URL": stage.URL}, "", append([]string{"artifacts"}, strings.Fields(args)...)...)
		if want := names.Replace(step.want); got.code != step.code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("artifacts %s: got exit code %d with\n%s%s\nwant %d with\n%s", args, got.code, got.stdout, got.stderr, step.code, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "saved")); err != nil || string(text) != `{"b":1}` {
		t.Errorf("got the file %q, %v, want the last content", text, err)
	}
}

// digest returns the SHA-256 of a text in hexadecimal.
func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
