package run

import (
	"errors"
	"testing"
	"time"
)

// moves is a fact that enters a state without regard to the transition table.
type moves State

func (m moves) apply(d *draft) error {
	d.enter(State(m), "", nil)
	return nil
}

// TestIllegalTransitionIsAnError checks RL-0.17 for every pair of states.
func TestIllegalTransitionIsAnError(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0).UTC()
	for _, from := range States() {
		for _, to := range States() {
			d, err := Decide(Run{ID: "r", State: from}, moves(to), now)
			want := IllegalTransition{from, to}
			switch {
			case from.CanBecome(to):
				if err != nil || d.Run.State != to || len(d.Events) != 1 || d.Events[0].From != from {
					t.Errorf("%s -> %s: got %s, events %+v, error %v", from, to, d.Run.State, d.Events, err)
				}
			case !errors.Is(err, want) || d.Changed || len(d.Events) > 0:
				t.Errorf("%s -> %s: got %+v, error %v, want error %v and no change", from, to, d, err, want)
			}
		}
	}
}

// TestEventIDsAreUnique checks EE-3.1 for events of several runs at the same time.
func TestEventIDsAreUnique(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0).UTC()
	seen := map[string]bool{}
	for _, r := range []Run{{Tenant: "a", ID: "r"}, {Tenant: "a", ID: "s"}, {Tenant: "b", ID: "r"}} {
		for seq := range 100 {
			id := eventID(r, seq, now)
			if seen[id] {
				t.Errorf("%s/%s: got id %s of event %d twice", r.Tenant, r.ID, id, seq)
			}
			seen[id] = true
		}
	}
}
