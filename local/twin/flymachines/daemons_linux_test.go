package flymachines_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/daemons"
)

// A killed server leaves its machines running. The next server ends them with all processes
// that they started, even if the supervisor was killed before.
func TestNothingOutlivesAnAdoptedMachine(t *testing.T) {
	t.Parallel()
	for _, name := range daemons.Names() {
		for _, killed := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", stopped", true: ", supervisor killed"}[killed], func(t *testing.T) {
				t.Parallel()
				if killed && name == "no environment" {
					t.Skip("needs a writable cgroup v2; package supervisor tests it where there is one")
				}
				dir, d := t.TempDir(), daemons.New(t, name)
				m, kill := crash(t, serveOptions{Dir: dir})
				made := m.launch(m.input("daemons", d.Script(saying("$PPID")+"sleep 600 & wait")))
				boss, err := strconv.Atoi(strings.TrimSpace(m.receive()))
				if err != nil {
					t.Fatal(err)
				}
				m.wait(made.ID, "started")
				kill()
				if killed {
					if err := syscall.Kill(boss, syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				}
				next := after(t, dir)
				if !killed {
					if code, _ := next.call("DELETE", "/v1/apps/"+app+"/machines/"+made.ID+"?force=true", "Bearer "+token, nil); code != 200 {
						t.Errorf("got status %d, want 200", code)
					}
				}
				if exit := next.exit(made.ID); exit.Signal != 9 {
					t.Errorf("got exit %+v, want signal 9", exit)
				}
				d.WantNone(t)
			})
		}
	}
}
