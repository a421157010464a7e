//go:build unix

package documents_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
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
	// zsh runs the blocks as a user types them into zsh, which has no comments and refuses
	// patterns without a match.
	zsh bool
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
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", built, "./local/sortie", "./shared/sdk/go/sortie-exec")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	typed := shells(t)
	for _, d := range documents(t, root, files) {
		var blocks []block
		for _, b := range d.blocks {
			_, marked := b.is("not run")
			if _, printed := b.is("printed"); b.language == "sh" && !marked || printed {
				blocks = append(blocks, b)
			}
		}
		if len(blocks) == 0 {
			continue
		}
		for _, shell := range typed {
			t.Run(d.path+"/"+shell, func(t *testing.T) {
				t.Parallel()
				w := newTour(t, root, files, built)
				w.zsh = shell == "zsh"
				for _, b := range blocks {
					w.do(b)
				}
			})
		}
	}
}

// inZsh also runs the blocks in zsh. "make nightly" sets it.
var inZsh = flag.Bool("zsh", false, "run the shell blocks of the documents in zsh too")

// shells returns the shells that run the blocks.
func shells(t *testing.T) []string {
	t.Helper()
	if !*inZsh {
		return []string{"bash"}
	}
	if _, err := exec.LookPath("zsh"); err != nil {
		t.Fatalf("zsh is needed and can be installed by its package of that name: %v", err)
	}
	return []string{"bash", "zsh"}
}

// do runs a block by its kind.
func (w *tour) do(b block) {
	w.Helper()
	if command, printed := b.is("printed"); printed {
		ctx, cancel := context.WithTimeout(w.Context(), blockLimit)
		defer cancel()
		if output, err := w.shell(ctx, command).Output(); err != nil || string(output) != b.text {
			w.Errorf("line %d: got %v\n%s\nwant\n%s", b.line, err, output, b.text)
		}
		return
	}
	if _, server := b.is("server"); server {
		w.serve(b)
		return
	}
	w.run(b)
}

// newTour creates a workspace that looks like the repository, in which a block may write files
// and build programs.
func newTour(t *testing.T, root string, files []string, built string) *tour {
	t.Helper()
	w := &tour{T: t, dir: t.TempDir(), end: func() {}}
	for _, file := range files {
		from, to := filepath.Join(root, filepath.FromSlash(file)), filepath.Join(w.dir, filepath.FromSlash(file))
		err := os.MkdirAll(filepath.Dir(to), 0o700)
		if err == nil {
			err = os.Link(from, to) // an embedded file must not be a symbolic link
		}
		if errors.Is(err, syscall.EXDEV) {
			err = copyFile(from, to)
		}
		if err != nil {
			t.Fatal(err)
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

// copyFile copies a file of the repository with its permissions.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// shell returns a command that runs a block's text, with the address of the running server.
func (w *tour) shell(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", w.address(text))
	cmd.Dir, cmd.Env = w.dir, slices.Concat(w.env, []string{"SORTIE_URL=" + w.url})
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, 10*time.Second
	return cmd
}

// address replaces the address in a text by that of the running server.
func (w *tour) address(text string) string {
	if w.url == "" {
		return text
	}
	return strings.ReplaceAll(text, documented, w.url)
}

// run runs a block. The following blocks get the variables that it sets.
func (w *tour) run(b block) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), blockLimit)
	defer cancel()
	kept := filepath.Join(w.dir, ".variables")
	text := "[ ! -f '" + kept + "' ] || . '" + kept + "'\n" + b.text + "\n{ declare -p TASK RUN >'" + kept + "'; } 2>/dev/null || true\n"
	cmd := w.shell(ctx, text)
	if w.zsh {
		// An interactive zsh ends its background jobs when it ends, which is later for its user.
		typed := exec.CommandContext(ctx, "zsh", "-f", "-i", "-s", "-e", "-u", "-o", "pipefail", "-o", "nohup", "-o", "nocheckjobs")
		typed.Stdin = strings.NewReader(w.address(text))
		typed.Dir, typed.Env, typed.Cancel, typed.WaitDelay = cmd.Dir, cmd.Env, cmd.Cancel, cmd.WaitDelay
		cmd = typed
	}
	if output, err := cmd.CombinedOutput(); err != nil {
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
