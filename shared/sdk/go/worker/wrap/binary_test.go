//go:build unix

package wrap

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// buildRelease builds sortie-exec into an empty folder, as make sortie-exec does.
func buildRelease(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(folder, "sortie-exec"), "../../sortie-exec")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return folder
}

// TestBinaryIsSmallAndStatic checks the size and the linking of the program, which has to fit
// into any image.
func TestBinaryIsSmallAndStatic(t *testing.T) {
	t.Parallel()
	name := filepath.Join(buildRelease(t), "sortie-exec")
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	const most = 8_000_000
	if info.Size() >= most {
		t.Errorf("got %d bytes, want fewer than %d", info.Size(), most)
	}
	if runtime.GOOS != "linux" {
		return
	}
	file, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("got a dynamically linked program, want a static one")
		}
	}
}

// TestBinaryRunsInAnEmptyRoot uses a root folder that contains only the program, which also
// serves as CMD.
func TestBinaryRunsInAnEmptyRoot(t *testing.T) {
	t.Parallel()
	root := buildRelease(t)
	s := setup(t, nil)
	run := func(name string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env, cmd.Dir = s.env, "/"
		if name == "/sortie-exec" {
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		}
		return cmd.CombinedOutput()
	}
	text, err := run("/sortie-exec", "/sortie-exec", "--help")
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") == "" {
		t.Log("the root folder cannot be changed without root: the program runs in this one")
		name := filepath.Join(root, "sortie-exec")
		text, err = run(name, name, "--help")
	}
	if err != nil || string(text) != help {
		t.Fatalf("got %v, %q, want the help", err, text)
	}
	if end := s.completed(); end["outcome"] != "SUCCEEDED" || !strings.Contains(s.log(), "sortie-exec runs a program") {
		t.Errorf("got completed %v, log %.60q, want SUCCEEDED and the help", end, s.log())
	}
}
