package answers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// stored returns all runs.
func (w *world) stored(ctx context.Context) []run.Run {
	var all []run.Run
	for page := (port.Page{Limit: 100}); ; {
		found, next, err := w.raw.store.List(ctx, tenant, page)
		if err != nil {
			w.fail("cannot list the runs: %v", err)
			return nil
		}
		all = append(all, found...)
		if page.Cursor = next; next == "" {
			return all
		}
	}
}

// checkState checks the stored data while all goroutines wait.
func (w *world) checkState() {
	w.mu.Lock()
	changed := w.changed
	w.changed = false
	w.mu.Unlock()
	if !changed {
		return
	}
	ctx := context.Background()
	runs := w.stored(ctx)
	w.checkAccounts(ctx, runs)
	w.holders = w.holders[:0]
	for _, r := range runs {
		if r.Slot.State == platform.SlotHeld && !r.State.Terminal() {
			w.holders = append(w.holders, r)
		}
		w.checkDeadline(r)
	}
	held := map[string]int{}
	for _, r := range w.holders {
		held[r.Slot.Pool]++
	}
	w.checkOffer(runs, held[poolID])
	if held[poolID] > w.place.Limit() || held[copyPool] > w.routes.copies.Limit() || w.spare != nil && held[sparePool] > w.spare.place.Limit() {
		w.fail("%v runs have a slot of their pool, want at most %d and %+v", held, w.place.Limit(), w.spare)
	}
}

// checkAccounts compares the accounts with the sums over the runs, and with the initial limits.
func (w *world) checkAccounts(ctx context.Context, runs []run.Run) {
	held, used := map[string]budget.Amount{}, map[string]budget.Amount{}
	for _, r := range runs {
		for _, scope := range r.Reservation.Scopes {
			if _, ok := budget.RateOf(scope); ok {
				held[scope] = held[scope].Plus(budget.Amount{Turns: 1})
				continue
			}
			held[scope], used[scope] = held[scope].Plus(r.Reservation.Held), used[scope].Plus(r.Reservation.Used)
		}
	}
	for _, scope := range slices.Sorted(maps.Keys(held)) {
		a, err := w.raw.store.Account(ctx, tenant, scope)
		if err != nil {
			w.fail("cannot read the account %s: %v", scope, err)
			continue
		}
		if a.Held != held[scope] || a.Spent != used[scope] {
			w.fail("the account %s holds %+v and has spent %+v, want %+v and %+v by its runs", scope, a.Held, a.Spent, held[scope], used[scope])
		}
		for i, amount := range append(slices.Clone(valuesOf(a.Held)), valuesOf(a.Spent)...) {
			if amount < 0 {
				w.fail("part %d of the account %s is negative: holds %+v, has spent %+v", i, scope, a.Held, a.Spent)
			}
		}
		limit := w.limits[scope].Values()
		if _, ok := budget.SessionOf(scope); ok {
			limit = budget.Standard().Session.Values()
		}
		if l, ok := w.keyLimit(scope); ok {
			limit = l.Values()
		}
		total := a.Held.Plus(a.Spent).Values()
		for i, most := range limit {
			if most != nil && total[i] > *most && budget.Parts()[i] != budget.Time {
				w.fail("the account %s holds and has spent %d %s, its limit is %d", scope, total[i], budget.Parts()[i], *most)
			}
		}
	}
}

func valuesOf(a budget.Amount) []int64 {
	v := a.Values()
	return v[:]
}

// slack is the time by which a task may end after its deadline if Sortie does not fail: two
// sweeps, and an engine that keeps the request.
const slack = 2*sweepEvery + 10*time.Second

// checkDeadline checks that no task outlives its deadline if Sortie does not fail.
func (w *world) checkDeadline(r run.Run) {
	if late := bubble.Now().Sub(r.AnswerBy()); w.plan.reliable() && !r.State.Terminal() && late > slack {
		w.fail("%s is %s %s after its deadline", r.ID, r.State, late)
	}
}

// quiet reports whether all runs have ended and no slot is held.
func (w *world) quiet() bool { return w.active() == "" }

// active describes the runs that have not ended and the held slots.
func (w *world) active() string {
	ctx := context.Background()
	var left []string
	for _, r := range w.stored(ctx) {
		if !r.State.Terminal() {
			left = append(left, fmt.Sprintf("%s is %s since %s", r.ID, r.State, r.EnteredAt.Sub(w.start)))
		} else if r.Discarded && !r.AnswerDeleted {
			left = append(left, r.ID+" has a deleted answer")
		}
	}
	pools, err := w.raw.store.Pools(ctx)
	for _, p := range pools {
		if p.Held+p.Queued > 0 {
			left = append(left, fmt.Sprintf("pool %s has %d slots taken and %d queued", p.Pool, p.Held, p.Queued))
		}
	}
	if err != nil {
		left = append(left, err.Error())
	}
	return strings.Join(left, ", ")
}
