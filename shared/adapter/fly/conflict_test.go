package fly_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestConflictsAreDistinguished responds 409 for different causes. A lack of capacity ends a
// launch. A machine that is leased or has changed is tried again later.
func TestConflictsAreDistinguished(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for _, variant := range []string{"memory", "cpu", "none"} {
		p.inject(t, faults.Rule{Kind: faults.Capacity, Variant: variant})
		if _, err := p.launch(t, spec("r-"+variant)); !fault.Is(err, fault.Capacity) {
			t.Errorf("%s: got %v, want %s", variant, err, fault.Capacity)
		}
	}
	p.inject(t)
	made, err := p.launch(t, spec("r-x"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, words := range map[faults.Kind]string{faults.Leased: "lease", faults.Changed: "changed"} {
		p.inject(t, faults.Rule{Kind: kind, Action: faults.Stop}, faults.Rule{Kind: kind, Action: faults.Destroy})
		for what, err := range map[string]error{
			"stop": p.runner.Stop(t.Context(), made.Machine, time.Second), "destroy": p.runner.Destroy(t.Context(), made.Machine),
		} {
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), words) {
				t.Errorf("%s of a machine that is %s: got %v, want %s with %q", what, kind, err, fault.Unavailable, words)
			}
		}
		if p.live(t, "r-x") != 1 {
			t.Errorf("%s: got no machine, want the refused calls to change nothing", kind)
		}
	}
	p.inject(t)
	if err := p.runner.Destroy(t.Context(), made.Machine); err != nil {
		t.Error(err)
	}
	if gone, err := p.runner.Wait(t.Context(), made.Machine, port.MachineGone, 30*time.Second); err != nil || gone.Phase != port.MachineGone {
		t.Errorf("got %+v, %v, want a machine that is gone", gone, err)
	}
}
