package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestDownloadKeepsOtherFiles downloads to the path of an existing file.
func TestDownloadKeepsOtherFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.xml")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := (&api{status: done(), stays: true}).start(t)
	got := sortie(t, env, "", "download", taskID, "-o", file)
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" || got.code != 1 || !strings.Contains(got.stderr, "--force") {
		t.Errorf("got %+v and the file %q (%v), want it unchanged and a hint at --force", got, text, err)
	}
	for _, flags := range []string{"--force", "-o " + file} { // the second one finds the same content
		got = sortie(t, env, "", append([]string{"download", taskID, "-o", file}, strings.Fields(flags)...)...)
		if text, err := os.ReadFile(file); err != nil || string(text) != content || got.code != 0 {
			t.Errorf("%s: got %+v and the file %q (%v), want %q", flags, got, text, err, content)
		}
	}
}

func TestDownloadReportsAShorterLife(t *testing.T) {
	t.Parallel()
	status := done()
	status.OutputExpiresAt = begin.Add(24 * time.Hour)
	a := &api{status: status, events: life(), shorten: begin.Add(time.Hour)}
	got := sortie(t, a.start(t), "", "export", "mods", "--pi", pi, "-o", t.TempDir())
	if want := "keeps the output until 2026-11-21 10:00:00 UTC (before the download: 2026-11-22 09:00:00 UTC)"; !strings.Contains(got.stderr, want) {
		t.Errorf("got %q, want %q", got.stderr, want)
	}
	same := &api{status: status, events: life()}
	if got := sortie(t, same.start(t), "", "export", "mods", "--pi", pi, "-o", t.TempDir()); strings.Contains(got.stderr, "keeps the output") {
		t.Errorf("got %q, want no note", got.stderr)
	}
}

// TestDownloadOfFailedChildren downloads the output of a failed run with children.
func TestDownloadOfFailedChildren(t *testing.T) {
	t.Parallel()
	status := failed()
	status.ErrorCode = "CHILDREN_FAILED"
	output := &contract.Output{Key: "results.jsonl", Size: int64(len(content))}
	parent := contract.Task{TaskID: taskID, Children: &contract.Children{}, Output: output}
	got := sortie(t, (&api{status: status, stays: true, task: parent}).start(t), "", "download", taskID, "-o", "-")
	if got.code != 0 || got.stdout != content || !strings.Contains(got.stderr, "404 Not Found (CHILDREN_FAILED") {
		t.Errorf("got %+v, want the output, and the failure on standard error", got)
	}
	parent.Output = nil
	got = sortie(t, (&api{status: status, stays: true, task: parent}).start(t), "", "download", taskID, "-o", "-")
	if got.code != 1 || !strings.Contains(got.stderr, "--only-failed") {
		t.Errorf("without an output: got %+v, want exit code 1 and a hint at --only-failed", got)
	}
}
