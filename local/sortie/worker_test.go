package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptInSortieExecIsAWorker checks that a shell script in sortie-exec uploads
// its output without credentials.
func TestScriptInSortieExecIsAWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wrapper, script, output := filepath.Join(dir, "sortie-exec"), filepath.Join(dir, "work.sh"), filepath.Join(dir, "left.xml")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", wrapper, "../../shared/sdk/go/sortie-exec")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	const work = "echo 45 halfway >&$SORTIE_PROGRESS_FD\nprintf '<mods>%s, attempt %s</mods>' \"$PI\" \"$SORTIE_ATTEMPT\" > \"$SORTIE_OUTPUT\"\n"
	if err := os.WriteFile(script, []byte(work), 0o600); err != nil {
		t.Fatal(err)
	}
	_, url := dev(t, dir, "--addr", "127.0.0.1:0", "--image",
		fmt.Sprintf("%s='%s' --output '%s' --content-type application/xml sh '%s'", image, wrapper, output, script))
	mine := t.TempDir()
	export := start(t, mine, "export", "mods", "--pi", sampleRoot, "--url", url)
	if code := export.exit(t); code != 0 {
		t.Fatalf("got exit code %d, want 0", code)
	}
	said := strings.Fields(export.stdout.String())
	if len(said) != 2 || said[1] != "left.mods.xml" {
		t.Fatalf("got %q on standard output", said)
	}
	if served, err := os.ReadFile(filepath.Join(mine, "left.mods.xml")); err != nil || string(served) != "<mods>"+sampleRoot+", attempt 1</mods>" {
		t.Errorf("got the file %q, error %v", served, err)
	}
	status := start(t, dir, "status", said[0], "--url", url, "--json")
	if code := status.exit(t); code != 0 || !strings.Contains(status.stdout.String(), "cpu_time_ms") {
		t.Errorf("got %s, want the figures of the program", status.stdout)
	}
}
