package harness

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// records has the runs as they were at the last refresh. A refresh reads the runs that may have
// changed. Records are not modified: a changed run gets a new record.
type records struct {
	touched map[run.Ref]bool
	ByID    map[string]*run.Run
	// Ordered is sorted by creation and id.
	Ordered []*run.Run
	Pools   []port.PoolUse
}

// touch records that a run may have changed.
func (r *records) touch(ref run.Ref) { r.touched[ref] = true }

// Refresh reads the runs that may have changed and returns the changed ones.
func (w *Base) Refresh() (changed []*run.Run) {
	r := &w.Records
	if len(r.touched) == 0 || w.Process.Crashed {
		return nil
	}
	ctx := context.Background()
	for ref := range r.touched {
		now, err := w.Process.Store.Load(ctx, ref)
		switch before := r.ByID[ref.ID]; {
		case errors.Is(err, port.ErrNotFound) && before == nil: // its creation failed
		case err != nil:
			w.Fail("cannot read run %s: %v", ref.ID, err)
		case before == nil || before.Version != now.Version:
			changed = append(changed, &now)
			r.ByID[ref.ID] = &now
		}
	}
	clear(r.touched)
	if len(changed) == 0 {
		return nil
	}
	slices.SortFunc(changed, byCreation)
	r.Ordered = r.Ordered[:0]
	for _, one := range r.ByID {
		r.Ordered = append(r.Ordered, one)
	}
	slices.SortFunc(r.Ordered, byCreation)
	w.ReadPools()
	return changed
}

// ReadPools reads the leases and queues of the pools.
func (w *Base) ReadPools() {
	var err error
	if w.Records.Pools, err = w.Process.Store.Pools(context.Background()); err != nil {
		w.Fail("cannot read the pools: %v", err)
	}
}

func byCreation(a, b *run.Run) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Observe makes a read of the simulation itself, outside of the current call.
func (w *Base) Observe(do func()) {
	if task := w.Time.Current; task != nil {
		call := task.Call
		task.Call = nil
		defer func() { task.Call = call }()
	}
	do()
}

// Current returns the stored runs now, without checking the changes.
func (w *Base) Current() []*run.Run {
	found := slices.Clone(w.Records.Ordered)
	for i, r := range found {
		if !w.Records.touched[r.Ref()] {
			continue
		}
		if now, err := w.Process.Store.Load(context.Background(), r.Ref()); err == nil {
			found[i] = &now
		}
	}
	return found
}

// Record returns a task's stored record. It returns false if the process has crashed.
func (w *Base) Record(task string) (run.Run, bool) {
	if w.Process.Crashed {
		return run.Run{}, false
	}
	r, err := w.Process.Store.Find(context.Background(), Client.Tenant, task)
	if err != nil {
		w.Fail("accepted run %s is lost: %v", task, err)
	}
	return r, err == nil
}

// CheckList compares all pages of the store's list with the records.
func (w *Base) CheckList(ctx context.Context) {
	page := port.Page{Limit: 1 + w.Random.IntN(20)}
	listed := map[string]int64{}
	for {
		runs, next, err := w.Process.Store.List(ctx, Client.Tenant, page)
		if err != nil {
			w.Fail("cannot list the records: %v", err)
			return
		}
		for _, r := range runs {
			listed[r.ID] = r.Version
		}
		if page.Cursor = next; next == "" {
			break
		}
	}
	for _, r := range w.Records.Ordered {
		if listed[r.ID] != r.Version {
			w.Fail("got version %d of %s in the list, want %d", listed[r.ID], r.ID, r.Version)
		}
	}
	if len(listed) != len(w.Records.Ordered) {
		w.Fail("got %d listed runs, want the %d stored ones", len(listed), len(w.Records.Ordered))
	}
}

// StoredRun reads the stored run of an owner.
func (w *Base) StoredRun(of port.MachineOwner) (r run.Run, ok bool) {
	var err error
	w.Observe(func() {
		r, err = w.Process.Store.Load(context.Background(), run.Ref{Tenant: of.Tenant, ID: of.RunID})
	})
	return r, err == nil
}
