//go:build unix

package documents_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The address in the documents, and the time limits of a block and a stop.
const (
	documented = "http://127.0.0.1:8080"
	blockLimit = 3 * time.Minute
	stopLimit  = time.Minute
)

// tour runs the blocks of one document.
type tour struct {
	*testing.T
	dir string
	env []string
	url string
	end func()
}

// TestToursRun runs every shell block without a marker that excludes it.
func TestToursRun(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "make", "python3"} {
		if _, err := exec.LookPath(tool); err != nil && os.Getenv("CI") != "" {
			t.Fatalf("%s is needed: %v", tool, err)
		} else if err != nil {
			t.Skipf("%s is needed and can be installed by its package of that name: %v", tool, err)
		}
	}
	root, files := repository(t)
	built := t.TempDir()
	// With the flags of the Makefile, so that "make build" in a workspace finds them up to date.
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", built, "./local/sortie", "./shared/worker/sortie-exec")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	for _, d := range documents(t, root, files) {
		var blocks []block
		for _, b := range d.blocks {
			if _, marked := b.is("not run"); b.language == "sh" && !marked {
				blocks = append(blocks, b)
			}
		}
		if len(blocks) == 0 {
			continue
		}
		t.Run(d.path, func(t *testing.T) {
			t.Parallel()
			w := newTour(t, root, built)
			for _, b := range blocks {
				if _, server := b.is("server"); server {
					w.serve(b)
				} else {
					w.run(b)
				}
			}
		})
	}
}

// newTour creates a workspace that looks like the repository, in which a block may write files
// and build programs.
func newTour(t *testing.T, root, built string) *tour {
	t.Helper()
	w := &tour{T: t, dir: t.TempDir(), end: func() {}}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && name != "bin" && name != "out" {
			if err := os.Symlink(filepath.Join(root, name), filepath.Join(w.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(w.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"sortie", "sortie-exec"} {
		if err := os.Link(filepath.Join(built, program), filepath.Join(w.dir, "bin", program)); err != nil {
			t.Fatal(err)
		}
	}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := strings.Fields(string(caches))
	w.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + os.TempDir(), "GOFLAGS=-trimpath",
		"GOCACHE=" + folders[0], "GOMODCACHE=" + folders[1],
	}
	t.Cleanup(func() { w.end() })
	return w
}

// shell returns a command that runs a block's text, with the address of the running server.
func (w *tour) shell(ctx context.Context, text string) *exec.Cmd {
	if w.url != "" {
		text = strings.ReplaceAll(text, documented, w.url)
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir, cmd.Env = w.dir, slices.Concat(w.env, []string{"SORTIE_URL=" + w.url})
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, 10*time.Second
	return cmd
}

// run runs a block. The following blocks get the variables that it sets.
func (w *tour) run(b block) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), blockLimit)
	defer cancel()
	kept := filepath.Join(w.dir, ".variables")
	text := "[ ! -f '" + kept + "' ] || . '" + kept + "'\n" + b.text + "\ndeclare -p TASK >'" + kept + "' 2>/dev/null || true\n"
	if output, err := w.shell(ctx, text).CombinedOutput(); err != nil {
		w.Fatalf("line %d: %v\n%s\n%s", b.line, err, b.text, output)
	}
}

// serve starts the Sortie of a block on a free port. It replaces the previous one.
func (w *tour) serve(b block) {
	w.Helper()
	w.end()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := w.shell(ctx, "exec "+strings.TrimSpace(b.text)+" --addr 127.0.0.1:0 --json")
	var log bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &log, stopLimit
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		w.Fatalf("line %d: %v", b.line, err)
	}
	w.end = sync.OnceFunc(func() {
		cancel()
		_ = cmd.Wait()
		if w.Failed() {
			w.Logf("the server wrote:\n%s", &log)
		}
	})
	line, err := bufio.NewReader(output).ReadBytes('\n')
	var at struct{ URL string }
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil || at.URL == "" {
		w.Fatalf("line %d: got the first line %q, want the server's addresses: %v", b.line, line, err)
	}
	w.url = at.URL
}
