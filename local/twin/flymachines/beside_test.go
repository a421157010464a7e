package flymachines_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// script is a program that prints a version.
func script(version string) string { return fmt.Sprintf("#!/bin/sh\necho '%s'\n", version) }

func TestSmallProgramIsFoundBesideTheOwnOne(t *testing.T) {
	t.Parallel()
	const small = "sortie-exec"
	write := func(t *testing.T, path, text string, mode fs.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		put func(t *testing.T, path string)
		why string // empty: the program is used
	}{
		"same version":         {func(t *testing.T, path string) { t.Helper(); write(t, path, script(supervisor.Version()), 0o755) }, ""},
		"other version":        {func(t *testing.T, path string) { t.Helper(); write(t, path, script("protocol 0"), 0o755) }, "another version"},
		"no program":           {func(t *testing.T, path string) { t.Helper(); write(t, path, "text", 0o644) }, "cannot run"},
		"others can change it": {func(t *testing.T, path string) { t.Helper(); write(t, path, script(supervisor.Version()), 0o775) }, "other users"},
		"a link": {func(t *testing.T, path string) {
			t.Helper()
			write(t, path+".linked", script(supervisor.Version()), 0o755)
			if err := os.Symlink(path+".linked", path); err != nil {
				t.Fatal(err)
			}
		}, "no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			own, path := filepath.Join(dir, "sortie"), filepath.Join(dir, small)
			write(t, own, "", 0o755)
			if got, err := flymachines.Beside(t.Context(), own); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("got %q, %v without a file, want fs.ErrNotExist", got, err)
			}
			row.put(t, path)
			link := filepath.Join(t.TempDir(), "linked")
			if err := os.Symlink(own, link); err != nil {
				t.Fatal(err)
			}
			got, err := flymachines.Beside(t.Context(), link)
			if row.why == "" && (err != nil || got != path) {
				t.Errorf("got %q, %v, want %s", got, err, path)
			}
			if row.why != "" && (err == nil || !strings.Contains(err.Error(), row.why)) {
				t.Errorf("got %q, %v, want an error about %q", got, err, row.why)
			}
		})
	}
}

// TestSmallProgramOfAnotherUserIsNotUsed places the file in a folder that all users can write
// to.
func TestSmallProgramOfAnotherUserIsNotUsed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a file to another user")
	}
	dir := t.TempDir()
	own, path := filepath.Join(dir, "sortie"), filepath.Join(dir, "sortie-exec")
	for _, file := range []string{own, path} {
		if err := os.WriteFile(file, []byte(script(supervisor.Version())), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if got, err := flymachines.Beside(t.Context(), own); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("got %q, %v, want an error about the owner", got, err)
	}
}

// TestSmallProgramIsReplacedByTheOwnOne removes the file while the server runs, as a build does
// for a moment.
func TestSmallProgramIsReplacedByTheOwnOne(t *testing.T) {
	t.Parallel()
	m := setup(t, func(c *flymachines.Config) {
		starter := processes(t)
		starter.Command, starter.Otherwise = []string{filepath.Join(t.TempDir(), "sortie-exec"), supervisor.Command}, starter.Command
		c.ExecImages, c.Starter = true, starter
	})
	in := m.input("", "")
	in.Config.Image = "exec:/bin/echo"
	in.Config.Init.Cmd = []string{"started"}
	id := m.launch(in).ID
	m.exit(id)
	if text, err := m.server.Logs(id); err != nil || string(text) != "started\n" {
		t.Errorf("got %q, %v, want the output of the program", text, err)
	}
}

// TestOneSmallProcessForEachProgram builds sortie-exec. One process of it is both the
// supervisor and the wrapper of a program.
func TestOneSmallProcessForEachProgram(t *testing.T) {
	t.Parallel()
	small := filepath.Join(t.TempDir(), "sortie-exec")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", small, "github.com/sortie-dev/sortie/shared/sdk/go/sortie-exec")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	m := setup(t, func(c *flymachines.Config) {
		c.ExecImages, c.Wrap, c.WrapperFlags = true, true, []string{"--standalone"}
		c.Starter = flymachines.Processes{Command: []string{small, supervisor.Command}, Clock: clock.System{}}
	})
	in := m.input("", "")
	in.Config.Image = "exec:/bin/sh"
	in.Config.Env["SORTIE_COMPLETION"] = "exit"
	in.Config.Init.Cmd = []string{"-c", "ps -o args= -p $PPID; ps -o ppid= -p $PPID"}
	id := m.launch(in).ID
	m.exit(id)
	text, err := m.server.Logs(id)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%s %s\n%d\n", small, supervisor.Command, os.Getpid()); strings.ReplaceAll(string(text), " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got the processes %q above the program, want %q and this one", text, want)
	}
}
