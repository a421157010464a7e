//go:build unix

package runners

import (
	"archive/tar"
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/daemons"
)

// User is the user of the images, which do not run as root.
const User = "65534:65534"

// Folder is the working directory of the programs. The container runner mounts an empty
// in-memory file system there.
const Folder = "/tmp"

// Entrypoints maps images to their commands. The files are in FileSystem.
func Entrypoints() map[string][]string {
	return map[string][]string{
		Image:  {"/sortie-exec", "--", "/program"},
		Plain:  {"/program"},
		Broken: {"/sortie-exec", "--", "/broken"},
	}
}

// FileSystem builds the programs of the images and returns a tar archive of their files. root
// is the root of the repository.
func FileSystem(t *testing.T, root string) []byte {
	t.Helper()
	dir := t.TempDir()
	content := map[string][]byte{"broken": []byte(BrokenProgram)}
	for name, what := range map[string]string{"program": "./local/proof/runners/image", "sortie-exec": "./shared/sdk/go/sortie-exec"} {
		to := filepath.Join(dir, name)
		compile := exec.CommandContext(t.Context(), "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, what)
		compile.Dir = root
		if text, err := compile.CombinedOutput(); err != nil {
			t.Fatalf("cannot build %s: %v: %s", what, err, text)
		}
		code, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		content[name] = code
	}
	addTools(t, content)
	var archive bytes.Buffer
	files := tar.NewWriter(&archive)
	if err := files.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write(content[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// addTools adds the host programs that the daemons need, with their libraries.
func addTools(t *testing.T, content map[string][]byte) {
	t.Helper()
	for _, tool := range daemons.Tools() {
		at, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		needed := map[string]string{"bin/" + tool: at}
		list, err := exec.CommandContext(t.Context(), "ldd", at).CombinedOutput()
		if err != nil {
			t.Fatalf("cannot list the libraries of %s: %v: %s", at, err, list)
		}
		for word := range strings.FieldsSeq(string(list)) {
			if name, is := strings.CutPrefix(word, "/"); is {
				needed[name] = word
			}
		}
		for name, from := range needed {
			if content[name], err = os.ReadFile(from); err != nil {
				t.Fatal(err)
			}
		}
	}
}
