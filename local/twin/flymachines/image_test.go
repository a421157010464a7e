package flymachines_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
)

// A wrapped program has a file descriptor for its progress.
func TestProgramsOfJobsRunUnderTheWrapper(t *testing.T) {
	t.Parallel()
	const wrapped = 50
	script := []string{"-c", `[ -z "$SORTIE_PROGRESS_FD" ] || exit 50; exit $#`, "name"}
	m := setup(t, func(c *flymachines.Config) {
		c.ExecImages, c.Wrap, c.WrapperFlags = true, true, []string{"--standalone"}
		c.Images["bound"] = append([]string{"/bin/sh"}, script...)
		c.Images["path"] = []string{"sh"}
	})
	for name, row := range map[string]struct {
		image, completion string
		cmd               []string
		code              int
	}{
		"a program of the host":            {"exec:/bin/sh", "", append(script, "x"), 1},
		"a program of the host, wrapped":   {"exec:/bin/sh", "exit", append(script, "x"), wrapped},
		"a program in the PATH, wrapped":   {"path", "exit", script, wrapped},
		"a bound image":                    {"bound", "", []string{"x", "y"}, 2},
		"a bound image, wrapped":           {"bound", "exit", nil, wrapped},
		"one that reports by itself":       {"bound", "callback", nil, 0},
		"a missing program, wrapped":       {"exec:/no/such", "exit", nil, 127},
		"one that is no program, wrapped":  {"exec:/etc/hosts", "exit", nil, 126},
		"killed by itself, wrapped":        {"exec:/bin/sh", "exit", []string{"-c", "kill -KILL $$"}, 137},
		"an argument like a flag, wrapped": {"exec:/bin/sh", "exit", []string{"--help"}, helped(t)},
	} {
		in := m.input("", "")
		in.Config.Image, in.Config.Init.Cmd = row.image, row.cmd
		in.Config.Env["SORTIE_COMPLETION"] = row.completion
		if exit := m.exit(m.launch(in).ID); exit.ExitCode != row.code {
			t.Errorf("%s: got exit code %d, want %d", name, exit.ExitCode, row.code)
		}
	}
}

// helped returns the exit code of sh --help, which differs between shells.
func helped(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "--help")
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode()
}

func TestProgramsOfTheHostAreUnknownByDefault(t *testing.T) {
	t.Parallel()
	m := setup(t)
	for _, image := range []string{"exec:/bin/true", "exec:true"} {
		in := m.input("", "")
		in.Config.Image = image
		_, err := m.client.Launch(t.Context(), app, in)
		refused(t, err, http.StatusBadRequest, "not found")
	}
}

// TestDigestIsThatOfTheProgram changes the program of an image. Machines created afterwards
// have another digest. An image reference can also name a digest.
func TestDigestIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(program, []byte(text), 0o700); err != nil { //nolint:gosec // it is executed
			t.Fatal(err)
		}
	}
	m := setup(t, func(c *flymachines.Config) {
		c.Images["tagged:v1"], c.Images["pinned@sha256:ab"] = []string{program}, []string{program}
	})
	digest := func(image, name string) string {
		in := m.input(name, "")
		in.Config.Image, in.SkipLaunch, in.Config.Init.Cmd = image, true, nil
		return m.launch(in).ImageRef.Digest
	}
	write("#!/bin/sh\n")
	first, again := digest("tagged:v1", "a"), digest("tagged:v1", "b")
	write("#!/bin/sh\nexit 1\n")
	changed := digest("tagged:v1", "c")
	if !strings.HasPrefix(first, "sha256:") || again != first || changed == first {
		t.Errorf("got digests %q, %q and %q, want the third one to differ", first, again, changed)
	}
	if got := digest("pinned@sha256:ab", "d"); got != "sha256:ab" {
		t.Errorf("got digest %q, want that of the reference", got)
	}
}
