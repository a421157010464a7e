package flymachines_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
)

// TestWrapperHasAnEnvironmentOfItsOwn runs a program that prints its own environment and that
// of its parent process, the wrapper.
func TestWrapperHasAnEnvironmentOfItsOwn(t *testing.T) {
	t.Parallel()
	m := setup(t, func(c *flymachines.Config) {
		c.ExecImages, c.Wrap, c.WrapperFlags = true, true, []string{"--standalone"}
	})
	in := m.input("", "")
	in.Config.Image = "exec:/bin/sh"
	in.Config.Init.Cmd = []string{"-c", "/usr/bin/tr '\\0' '\\n' </proc/$PPID/environ; echo --; /usr/bin/env"}
	maps.Copy(in.Config.Env, map[string]string{"SORTIE_COMPLETION": "exit", "GODEBUG": "x", "GOGC": "7", "HTTP_PROXY": "http://of.the.job", "PATH": "/of/the/job"})
	id := m.launch(in).ID
	m.exit(id)
	text, err := m.server.Logs(id)
	if err != nil {
		t.Fatal(err)
	}
	own, job, _ := strings.Cut(string(text), "--\n")
	for _, name := range []string{"GODEBUG", "SORTIE_COMPLETION", "HTTP_PROXY"} {
		if strings.Contains(own, name+"=") || !strings.Contains(job, name+"=") {
			t.Errorf("%s: got the wrapper's variables %q and the program's %q, want it in the latter alone", name, own, job)
		}
	}
	if !strings.Contains(job, "PATH=/of/the/job\n") || !strings.Contains(own, "PATH=/usr/") || !strings.Contains(job, "GOGC=7\n") || strings.Contains(own, "GOGC=7\n") {
		t.Errorf("got variables %q and %q, want each its own", own, job)
	}
	if strings.Contains(job, "GOMAXPROCS=") {
		t.Errorf("got variables %q of the program, want none of the wrapper", job)
	}
}
