package wrap

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/daemons"
)

// TestNothingOutlivesTheProgram checks that all processes that a program has started end when
// it ends in any way.
func TestNothingOutlivesTheProgram(t *testing.T) {
	t.Parallel()
	for _, name := range daemons.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("success", func(t *testing.T) {
				t.Parallel()
				s, d := setup(t, nil), daemons.New(t, name)
				if got := s.run("sh", "-c", d.Script("exit 0")); got.code != 0 || s.completed()["outcome"] != "SUCCEEDED" {
					t.Errorf("got code %d, %v, want success", got.code, s.completed())
				}
				d.WantNone(t)
			})
			t.Run("failure", func(t *testing.T) {
				t.Parallel()
				s, d := setup(t, nil), daemons.New(t, name)
				if got := s.run("sh", "-c", d.Script("exit 7")); got.code != 7 {
					t.Errorf("got code %d, want 7", got.code)
				}
				d.WantNone(t)
			})
			t.Run("killed", func(t *testing.T) {
				t.Parallel()
				s, d := setup(t, nil), daemons.New(t, name)
				if got := s.run("sh", "-c", d.Script("kill -KILL $$")); got.code != 137 {
					t.Errorf("got code %d, want 137", got.code)
				}
				d.WantNone(t)
			})
			t.Run("cancel", func(t *testing.T) {
				t.Parallel()
				d := daemons.New(t, name)
				s := setup(t, cancelledOnce(d.Begin()))
				s.run("sh", "-c", d.Script("sleep 600 & wait"))
				if s.completed()["outcome"] != "CANCELLED" {
					t.Errorf("got %v, want CANCELLED", s.completed())
				}
				d.WantNone(t)
			})
		})
	}
}

// TestProgramKeepsTheMarkOfItsMachine checks that a program has the machine's variable. It
// identifies the processes of a machine whose supervisor was killed.
func TestProgramKeepsTheMarkOfItsMachine(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	s.env = append(s.env, "FLY_MACHINE_ID=148e")
	if got := s.run("sh", "-c", "echo $FLY_MACHINE_ID"); got.stdout != "148e\n" {
		t.Errorf("got %q, want the id", got.stdout)
	}
}
