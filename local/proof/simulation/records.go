package simulation

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
	byID    map[string]*run.Run
	// ordered is sorted by creation and id.
	ordered []*run.Run
	pools   []port.PoolUse
}

// touch records that a run may have changed.
func (r *records) touch(ref run.Ref) { r.touched[ref] = true }

// refresh reads the runs that may have changed and returns the changed ones.
func (w *base) refresh() (changed []*run.Run) {
	r := &w.records
	if len(r.touched) == 0 || w.process.crashed {
		return nil
	}
	ctx := context.Background()
	for ref := range r.touched {
		now, err := w.process.store.Load(ctx, ref)
		switch before := r.byID[ref.ID]; {
		case errors.Is(err, port.ErrNotFound) && before == nil: // its creation failed
		case err != nil:
			w.fail("cannot read run %s: %v", ref.ID, err)
		case before == nil || before.Version != now.Version:
			changed = append(changed, &now)
			r.byID[ref.ID] = &now
		}
	}
	clear(r.touched)
	if len(changed) == 0 {
		return nil
	}
	slices.SortFunc(changed, byCreation)
	r.ordered = r.ordered[:0]
	for _, one := range r.byID {
		r.ordered = append(r.ordered, one)
	}
	slices.SortFunc(r.ordered, byCreation)
	w.readPools()
	return changed
}

// readPools reads the leases and queues of the pools.
func (w *base) readPools() {
	var err error
	if w.records.pools, err = w.process.store.Pools(context.Background()); err != nil {
		w.fail("cannot read the pools: %v", err)
	}
}

func byCreation(a, b *run.Run) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// observe makes a read of the simulation itself, outside of the current call.
func (w *base) observe(do func()) {
	if task := w.time.current; task != nil {
		call := task.call
		task.call = nil
		defer func() { task.call = call }()
	}
	do()
}

// current returns the stored runs now, without checking the changes.
func (w *base) current() []*run.Run {
	found := slices.Clone(w.records.ordered)
	for i, r := range found {
		if !w.records.touched[r.Ref()] {
			continue
		}
		if now, err := w.process.store.Load(context.Background(), r.Ref()); err == nil {
			found[i] = &now
		}
	}
	return found
}

// record returns a task's stored record. It returns false if the process has crashed.
func (w *base) record(task string) (run.Run, bool) {
	if w.process.crashed {
		return run.Run{}, false
	}
	r, err := w.process.store.Find(context.Background(), client.Tenant, task)
	if err != nil {
		w.fail("accepted run %s is lost: %v", task, err)
	}
	return r, err == nil
}

// checkList compares all pages of the store's list with the records.
func (w *base) checkList(ctx context.Context) {
	page := port.Page{Limit: 1 + w.random.IntN(20)}
	listed := map[string]int64{}
	for {
		runs, next, err := w.process.store.List(ctx, client.Tenant, page)
		if err != nil {
			w.fail("cannot list the records: %v", err)
			return
		}
		for _, r := range runs {
			listed[r.ID] = r.Version
		}
		if page.Cursor = next; next == "" {
			break
		}
	}
	for _, r := range w.records.ordered {
		if listed[r.ID] != r.Version {
			w.fail("got version %d of %s in the list, want %d", listed[r.ID], r.ID, r.Version)
		}
	}
	if len(listed) != len(w.records.ordered) {
		w.fail("got %d listed runs, want the %d stored ones", len(listed), len(w.records.ordered))
	}
}
