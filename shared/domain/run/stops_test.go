package run_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestMachineStopsAreLimited stops each machine of a run from outside. The delays must grow, no
// attempt may be used up, and the run must fail in the end. A shutdown of the host must use up
// and delay nothing.
func TestMachineStopsAreLimited(t *testing.T) {
	t.Parallel()
	first := fresh()
	first.Policy.Retry = spec.Retry{MaxAttempts: 1, InitialDelay: 2 * time.Second, Multiplier: 2, MaxDelay: time.Minute}
	for _, host := range []bool{false, true} {
		now, machines, took, last := epoch, 0, time.Duration(0), time.Duration(0)
		r := run.New(first, now).Run
		apply := func(f run.Fact) {
			d, err := run.Decide(r, f, now)
			if err != nil || !d.Changed {
				t.Fatalf("%T on %s: got change %t (%v), want one", f, r.State, d.Changed, err)
			}
			r = d.Run
		}
		for !r.State.Terminal() && machines < 1000 {
			machines++
			apply(run.Admitted{Pool: "p"})
			apply(run.MachineCreated{Attempt: machines, Machine: platform.Machine{ID: "m"}, Running: true})
			apply(run.MachineGone{Attempt: machines, Exit: &run.Exit{Code: 143, Signal: 15, Requested: true, Host: host}})
			apply(run.Settled{})
			if r.State != run.Retrying {
				break
			}
			delay := r.RetryAt.Sub(now)
			if delay < last {
				t.Errorf("stop %d: got a delay of %s after %s, want it to grow", machines, delay, last)
			}
			last, took, now = delay, took+delay, r.RetryAt
			apply(run.Due{})
		}
		switch {
		case r.Spent.Attempts != 0:
			t.Errorf("host %t: got %d attempts used, want 0", host, r.Spent.Attempts)
		case host && (machines != 1000 || last != 2*time.Second):
			t.Errorf("got %d machines and a delay of %s with a host that shuts down, want 1000 and 2s", machines, last)
		case !host && (r.State != run.Failed || r.Fault.Code != fault.MachineStopped || machines > 30 || took < time.Hour):
			t.Errorf("got %s (%v) after %d machines in %s, want a failure after at most 30 in more than an hour", r.State, r.Fault, machines, took)
		}
	}
}
