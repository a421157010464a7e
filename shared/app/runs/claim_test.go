package runs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// unclaimedStore is a store that was emptied, or restored to another one.
type unclaimedStore struct {
	port.Store
	claimed bool
}

// Claimed implements port.Store.
func (s *unclaimedStore) Claimed(context.Context) (bool, error) { return s.claimed, nil }

// Claim implements port.Store.
func (s *unclaimedStore) Claim(context.Context) error {
	s.claimed = true
	return nil
}

// TestLostRecordsKeepTheirMachines checks that a sweep of a store without the records of
// living machines fails and destroys none, and that it destroys machines without a record
// once a sweep has seen none, or an operator has claimed the store.
//
// Rule 5 of shared/README.md.
func TestLostRecordsKeepTheirMachines(t *testing.T) {
	t.Parallel()
	for name, claims := range map[string]bool{"an operator claims the store": true, "the machines end": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			store := &unclaimedStore{Store: h.store}
			service := h.system(wiring{store: store})
			task := h.post()
			unknown := func() *machine {
				m := &machine{MachineStatus: port.MachineStatus{
					Machine: port.Machine{Runner: "fly", App: "app", ID: "lost"}, Name: "lost", Phase: port.MachineRunning,
					Owner: port.MachineOwner{Tenant: "default", RunID: "export_mods_lost", Attempt: 1},
				}}
				h.runner.launched = append(h.runner.launched, m)
				return m
			}
			lost := unknown()
			for range 3 {
				if err := service.Sweep(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "machine lost") {
					t.Errorf("got error %v, want one with the machine", err)
				}
			}
			if store.claimed || h.runner.live() != 2 {
				t.Fatalf("got claimed=%t and %d live machines, want false and 2", store.claimed, h.runner.live())
			}
			if claims {
				h.ok(store.Claim(t.Context()))
			} else {
				lost.Phase = port.MachineGone
			}
			h.ok(service.Sweep(t.Context(), 0))
			if !store.claimed || lost.Phase != port.MachineGone {
				t.Errorf("got claimed=%t and phase %s, want true and %s", store.claimed, lost.Phase, port.MachineGone)
			}
			lost.ID = "app/first"
			stray := unknown()
			h.ok(service.Sweep(t.Context(), 0))
			if stray.Phase != port.MachineGone {
				t.Errorf("claimed: got phase %s, want %s", stray.Phase, port.MachineGone)
			}
			store.claimed = false // the table is emptied while the process lives
			lost.ID = "app/second"
			stray.ID = "app/third"
			kept := unknown()
			if err := service.Sweep(t.Context(), 0); err == nil || kept.Phase == port.MachineGone {
				t.Errorf("emptied: got error %v and phase %s, want an error and %s", err, kept.Phase, port.MachineRunning)
			}
			h.wantState(task, run.Running)
		})
	}
}

// TestUnreadableListDoesNotClaim checks that a sweep that has not seen every machine does
// not claim the store.
func TestUnreadableListDoesNotClaim(t *testing.T) {
	t.Parallel()
	h := setup(t)
	store := &unclaimedStore{Store: h.store}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := h.system(wiring{store: store, runner: hangingRunner{h.runner}}).Sweep(ctx, 0); err == nil || store.claimed {
		t.Errorf("got error %v and claimed=%t, want an error and false", err, store.claimed)
	}
}
