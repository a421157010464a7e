package flymachines_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
)

// The wrapper exits with the number of its arguments, so the exit code shows what it
// was given.
func TestProgramsOfJobsRunUnderTheWrapper(t *testing.T) {
	t.Parallel()
	m := setup(t, func(c *flymachines.Config) {
		c.ExecImages, c.Wrapper = true, []string{"/bin/sh", "-c", "exit $#", "wrapper"}
		c.Images["bound"] = []string{"/bin/sh", "-c", "exit 40"}
	})
	for name, row := range map[string]struct {
		image, completion string
		cmd               []string
		code              int
	}{
		"a program of the host":          {"exec:/bin/sh", "", []string{"-c", "exit 41"}, 41},
		"a program of the host, wrapped": {"exec:/bin/sh", "exit", []string{"-c", "exit 41"}, 4}, // -- and three words
		"a bound image":                  {"bound", "", nil, 40},
		"a bound image, wrapped":         {"bound", "exit", []string{"x"}, 5},
		"one that reports by itself":     {"bound", "callback", nil, 40},
	} {
		in := m.input("", "")
		in.Config.Image, in.Config.Init.Cmd = row.image, row.cmd
		in.Config.Env["SORTIE_COMPLETION"] = row.completion
		if exit := m.exit(m.launch(in).ID); exit.ExitCode != row.code {
			t.Errorf("%s: got exit code %d, want %d", name, exit.ExitCode, row.code)
		}
	}
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

// TestDigestIsThatOfTheProgram changes the program of an image: machines that are created
// then have another digest, and the reference of an image can have its own.
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

// TestWrapperHasAnEnvironmentOfItsOwn runs a wrapper that prints its environment and its standard input.
func TestWrapperHasAnEnvironmentOfItsOwn(t *testing.T) {
	t.Parallel()
	m := setup(t, func(c *flymachines.Config) {
		c.ExecImages, c.Wrapper = true, []string{"/bin/sh", "-c", "env | sed s/=.*//; echo --; tr '\\0' '\\n'"}
	})
	in := m.input("", "")
	in.Config.Image = "exec:/bin/true"
	maps.Copy(in.Config.Env, map[string]string{
		"SORTIE_COMPLETION": "exit", "LD_PRELOAD": "/no/such.so", "GODEBUG": "x", "PATH": "/of/the/job", "TASK_ENVELOPE": "{}",
	})
	id := m.launch(in).ID
	m.exit(id)
	text, err := m.server.Logs(id)
	if err != nil {
		t.Fatal(err)
	}
	own, job, _ := strings.Cut(string(text), "--\n")
	for _, name := range []string{"LD_PRELOAD", "GODEBUG", "SORTIE_COMPLETION", "TASK_ENVELOPE"} {
		if strings.Contains(own, name) || !strings.Contains(job, name+"=") {
			t.Errorf("%s: got the wrapper's variables %q and the program's %q, want it in the latter alone", name, own, job)
		}
	}
	if !strings.Contains(job, "PATH=/of/the/job\n") || !strings.Contains(own, "PATH\n") {
		t.Errorf("got variables %q and %q, want a PATH in both", own, job)
	}
}
