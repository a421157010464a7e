package answers

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// checkEnd checks the stored data when everything has ended.
func (w *world) checkEnd(ctx context.Context) {
	runs := w.stored(ctx)
	byID := map[string]run.Run{}
	spent := map[string]budget.Amount{}
	for _, r := range runs {
		byID[r.TaskID] = r
		w.outcome.Attempts += r.Attempt.Number
		w.outcome.Ends[r.State]++
		if !r.State.Terminal() || r.Slot.State == platform.SlotHeld || r.Slot.State == platform.SlotQueued {
			w.fail("%s is left as %s with the slot %q", r.ID, r.State, r.Slot.State)
		}
		if !r.Reservation.Held.Zero() {
			w.fail("%s has ended and holds %+v", r.ID, r.Reservation.Held)
		}
		most := 2 * engineAttempts
		if r.Detour != nil {
			most *= 2
		}
		if r.Attempt.Number > most {
			w.fail("%s has %d attempts, want at most %d", r.ID, r.Attempt.Number, most)
		}
		used := r.Reservation.Used
		if r.Discarded {
			w.checkDeleted(ctx, r)
		} else {
			used = w.checkStream(ctx, r)
		}
		if got := r.Reservation.Used; !sameUse(got, used) {
			w.fail("%s, %s with %+v, has used %+v, want %+v by its stream", r.ID, r.State, r.Generation, got, used)
		}
		for _, scope := range r.Reservation.Scopes {
			if _, ok := budget.RateOf(scope); !ok {
				spent[scope] = spent[scope].Plus(used)
			}
		}
	}
	w.checkAccounts(ctx, runs)
	w.checkSpent(ctx, spent)
	w.checkUsage(ctx, runs)
	for _, t := range w.tasks {
		r, has := byID[t.id]
		if !has {
			w.fail("the accepted task %s of %s is lost", t.id, t.name)
		}
		if t.cancelledAt > 0 && !r.Discarded {
			if head, err := w.raw.feed.Head(ctx, inference.StreamOf(tenant, t.id)); err != nil || head.Newest != t.cancelledAt {
				w.fail("the stream of %s ends at %d, %v, and ended at %d when its cancel was acknowledged", t.id, head.Newest, err, t.cancelledAt)
			}
		}
		w.checkTime(r, t)
	}
	w.checkReplicas(ctx)
	w.checkObjects(ctx)
}

// engineAttempts limits the failed attempts of a task, separately for those that had begun to
// answer and those that had not.
const engineAttempts = 3

// checkStream checks the stream of an ended run. It returns the usage that the stream states,
// without the time.
func (w *world) checkStream(ctx context.Context, r run.Run) (used budget.Amount) {
	stream := inference.StreamOf(tenant, r.TaskID)
	var all []inference.Record
	for after := int64(0); ; {
		found, err := w.raw.feed.Read(ctx, stream, after, 200)
		if err != nil {
			w.fail("cannot read the stream of %s: %v", r.ID, err)
			return used
		}
		if len(found) == 0 {
			break
		}
		for _, each := range found {
			record, err := inference.Decode(each.Data)
			if err != nil || each.Position != after+1 {
				w.fail("the stream of %s has position %d behind %d: %v", r.ID, each.Position, after, err)
			}
			all, after = append(all, record), each.Position
		}
	}
	var got answered
	var results, attempt int
	for i, record := range all {
		if record.Ends() != (i == len(all)-1) {
			w.fail("record %d of %d of the stream of %s: %+v", i+1, len(all), r.ID, record)
		}
		if record.Tokens != nil && (record.First != got.pieces || record.Attempt < attempt) || record.Reasoning != nil && record.First != got.reasoning {
			w.fail("record %d of the stream of %s has token %d of attempt %d behind %+v of attempt %d", i+1, r.ID, record.First, record.Attempt, got, attempt)
		}
		attempt = max(attempt, record.Attempt)
		got.pieces, got.reasoning = got.pieces+len(record.Tokens), got.reasoning+len(record.Reasoning)
		for _, part := range record.Calls {
			got.call(part)
		}
		if record.Result != nil {
			results++
		}
	}
	if len(all) == 0 {
		w.fail("the stream of %s, which is %s, has no record", r.ID, r.State)
		return used
	}
	w.checkFallbacks(r, all)
	w.checkChoices(r, all)
	return w.checkLast(r, all[len(all)-1], got, results)
}

// checkLast compares the last record of a stream with its run.
func (w *world) checkLast(r run.Run, last inference.Record, got answered, results int) (used budget.Amount) {
	in, cached, out, answered := 0, 0, 0, false
	switch {
	case last.End != nil:
		in, cached, out, answered = last.End.TokensIn, last.End.CachedTokens, last.End.TokensOut, true
		if r.State != run.Completed {
			w.fail("the stream of %s ends with an end, and the run is %s", r.ID, r.State)
		}
		if r.Work.Inference.Workload == string(port.WorkloadCompletion) {
			w.checkForm(r, got, *last.End)
		}
	case last.Error != nil:
		out, answered = last.Error.TokensOut, last.Error.TokensOut > 0
		if (last.Error.Code == fault.Cancelled) != (r.State == run.Cancelled) || r.State == run.Completed {
			w.fail("the stream of %s ends with %s, and the run is %s", r.ID, last.Error.Code, r.State)
		}
		if g := r.Generation; g != nil {
			in, cached = g.TokensIn, g.CachedTokens
		}
	}
	if out != got.tokens() {
		w.fail("the stream of %s has %+v, and its last record says %d tokens", r.ID, got, out)
	}
	if r.State == run.Completed && r.Work.Inference.Workload != string(port.WorkloadCompletion) && results == 0 {
		w.fail("%s is Completed without a result", r.ID)
	}
	if !answered {
		return used
	}
	price := w.priceOf(r)
	used = budget.Amount{Turns: 1, Tokens: int64(out), CostNano: int64(in)*price.Input + int64(out)*price.Output}
	if price.Cached != nil {
		used.CostNano -= int64(cached) * (price.Input - *price.Cached)
	}
	if price.Input > 0 {
		used.Tokens += int64(in)
	}
	return used.Within(w.mostOf(r))
}

// checkSpent compares the accounts with the usage in the streams, except for the time.
func (w *world) checkSpent(ctx context.Context, spent map[string]budget.Amount) {
	for _, scope := range slices.Sorted(maps.Keys(spent)) {
		want := spent[scope]
		a, err := w.raw.store.Account(ctx, tenant, scope)
		if err != nil {
			w.fail("cannot read the account %s: %v", scope, err)
		}
		if !sameUse(a.Spent, want) {
			w.fail("the account %s has spent %+v, want %+v by the streams", scope, a.Spent, want)
		}
		if !a.Held.Zero() {
			w.fail("the account %s holds %+v for no run", scope, a.Held)
		}
		if scope == budget.ScopeTenant {
			w.outcome.Tokens = a.Spent.Tokens
		}
	}
}

// checkTime compares the charged time with the time of the engines. An attempt may add the time
// of its appends to the stream.
func (w *world) checkTime(r run.Run, t *task) {
	charged := time.Duration(r.Reservation.Used.TimeMS) * time.Millisecond
	besides := time.Second
	if !w.plan.reliable() {
		besides = 2 * slowest
	}
	if most := w.generating[t.name] + time.Duration(r.Attempt.Number)*besides; charged > most {
		w.fail("%s is charged with %s, its engines took %s", r.ID, charged, w.generating[t.name])
	}
}

// sameUse compares amounts except for the time.
func sameUse(a, b budget.Amount) bool {
	a.TimeMS, b.TimeMS = 0, 0
	return a == b
}

// checkReplicas checks that no replica has a running request.
func (w *world) checkReplicas(ctx context.Context) {
	for _, r := range w.replicas {
		load, err := r.mock.Load(ctx)
		if err != nil || *load.Running > 0 {
			w.fail("%s has %d requests left, %v", r.id, *load.Running, err)
		}
		for p, open := range r.open {
			if open != 0 {
				w.fail("%s has %d open requests at %s", p.name, open, r.id)
			}
		}
	}
}
