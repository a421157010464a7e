package flymachines_test

import (
	"net/http"
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
