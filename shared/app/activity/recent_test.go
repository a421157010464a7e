package activity_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/port"
)

// counted counts the reads of resources.
type counted struct {
	activity.Store
	reads *atomic.Int64
}

func (c counted) LoadResource(ctx context.Context, ref port.ResourceRef) (port.Resource, error) {
	c.reads.Add(1)
	return c.Store.LoadResource(ctx, ref)
}

// TestSlotsAreReadOnceForEachSweep reads the figures between the sweeps.
func TestSlotsAreReadOnceForEachSweep(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var reads atomic.Int64
	w.store.Store = counted{w.store.Store, &reads}
	wantReads := func(want int64) {
		t.Helper()
		if got := reads.Swap(0); got != want {
			t.Errorf("got %d reads, want %d", got, want)
		}
	}
	w.add(t, 3, true)
	w.count(t)
	reads.Store(0)
	first := w.want(t, "24h", 3, 3, true)
	wantReads(25 + 2)
	copied := first.Slots[24].Clone()
	w.want(t, "24h", 3, 3, true)
	wantReads(1)
	w.add(t, 2, true)
	w.want(t, "24h", 5, 5, true)
	w.add(t, 1, false)
	w.want(t, "24h", 6, 5, true)
	w.Clock.Advance(2 * time.Hour) // an empty slot replaces the oldest one
	w.add(t, 1, false)
	w.want(t, "24h", 7, 5, true)
	wantReads(3)
	if diff := cmp.Diff(copied, first.Slots[24]); diff != "" {
		t.Errorf("figures that were returned have changed: %s", diff)
	}
	w.count(t)
	reads.Store(0)
	again := w.want(t, "24h", 7, 5, true)
	wantReads(25 + 2)
	other := activity.NewTally(w.store, w.feed, w.Clock, nil)
	f, err := other.Figures(t.Context(), who, "24h")
	if diff := cmp.Diff(f, again); err != nil || diff != "" {
		t.Errorf("got %v and other figures than a process without memory: %s", err, diff)
	}
}

// TestFewWindowsStayInMemory reads the figures of more tenants than stay in memory.
func TestFewWindowsStayInMemory(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var reads atomic.Int64
	w.store.Store = counted{w.store.Store, &reads}
	read := func(tenant string) {
		t.Helper()
		if _, err := w.tally.Figures(t.Context(), port.Identity{Tenant: tenant}, "1h"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		read(fmt.Sprint(i))
	}
	reads.Store(0)
	read("29")
	if got := reads.Load(); got != 1 {
		t.Errorf("got %d reads of the newest, want 1", got)
	}
	read("0")
	if got := reads.Load(); got != 1+31+2 {
		t.Errorf("got %d reads, want those of a window that was forgotten", got)
	}
}
