package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/twin/asl"
)

// saveAfter limits how long the result of an invocation is only in memory.
const saveAfter = 2 * time.Second

// saveSlice is the number of executions that one write of save stores.
const saveSlice = 500

// unsaved is an execution that was changed and not stored.
type unsaved struct {
	entry *entry
	since int64
}

// returned applies the result of an invocation to the execution. The result is stored with the
// next change of the execution, with a commit of the next invocation, or after saveAfter. If
// the process ends before that, the invocation is repeated. Nothing else depends on the result:
// the next invocation stores it before others learn its token (see Join).
func (e *Engine) returned(ctx context.Context, en *entry, result stimulus) error {
	_, err := e.changeOr(ctx, en, result, func(entered int64) bool {
		x := en.execution
		return x.Status() == asl.Succeeded || x.Busy() || x.Status() == asl.Running && x.Entered() == entered
	})
	return err
}

// saveLater records that the execution has a change that is not stored. The caller holds en.mu.
func (e *Engine) saveLater(en *entry, r *row) {
	known := en.later != nil
	en.later = r
	if known {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.later = append(e.later, unsaved{en, milli(e.config.Clock.Now())})
}

// unsaved returns the row of an execution with a change that is not stored, or nil. The caller
// holds en.mu.
func (e *Engine) unsaved(en *entry) *row {
	switch {
	case en.later == nil:
		return nil
	case en.execution == nil:
		return en.later
	}
	return e.row(en)
}

// restore undoes a change that could not be stored. The execution is then former, or the stored
// one if former is nil. The caller holds en.mu.
func (en *entry) restore(former *row) {
	en.later = nil
	en.forget()
	en.later = former
}

// nextSave returns the time of the next save.
func (e *Engine) nextSave() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.later) == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(e.later[0].since).Add(saveAfter), true
}

// saveDue stores the executions that were changed at least saveAfter ago.
func (e *Engine) saveDue(ctx context.Context) error {
	if at, ok := e.nextSave(); !ok || at.After(e.config.Clock.Now()) {
		return nil
	}
	return e.save(ctx)
}

// save stores all executions that were changed and not stored.
func (e *Engine) save(ctx context.Context) error {
	e.mu.Lock()
	all := e.later
	e.later = nil
	e.mu.Unlock()
	// An execution is in the list twice if it was stored and changed again.
	slices.SortFunc(all, func(a, b unsaved) int { return cmp.Compare(a.entry.id, b.entry.id) })
	all = slices.CompactFunc(all, func(a, b unsaved) bool { return a.entry == b.entry })
	for len(all) > 0 {
		n := min(len(all), saveSlice)
		if err := e.saveSome(ctx, all[:n]); err != nil {
			e.mu.Lock()
			e.later = append(all, e.later...)
			e.mu.Unlock()
			return err
		}
		all = all[n:]
	}
	return nil
}

// saveSome stores executions, ordered by id.
func (e *Engine) saveSome(ctx context.Context, some []unsaved) error {
	rows := make([]*row, 0, len(some))
	for _, each := range some {
		each.entry.mu.Lock()
	}
	defer func() {
		for _, each := range some {
			each.entry.mu.Unlock()
		}
	}()
	for _, each := range some {
		if r := e.unsaved(each.entry); r != nil {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := e.store.update(ctx, rows...); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, each := range some {
		if each.entry.over && each.entry.later != nil {
			e.ending--
			delete(e.entries, each.entry.id)
		}
		each.entry.later = nil
	}
	return nil
}
