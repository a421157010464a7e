package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	// watchLeast is the interval of polls after a change. It grows to watchMost while nothing
	// changes.
	watchLeast = 2 * time.Second
	watchMost  = 10 * time.Second
	// watchFrame is the interval of probes of the server, and of terminal refreshes, which update
	// ages and the size.
	watchFrame = 500 * time.Millisecond
	// watchRuns is the number of runs in the page of a poll. A poll also reads up to watchReads
	// runs, one by one, that have left the page.
	watchRuns  = 100
	watchReads = 20
	// watchPools limits the pools on a terminal.
	watchPools = 5
)

// watcher displays changes of runs and pools.
type watcher struct {
	*app
	client *client.Client
	flags  runsFlags
	filter contract.RunFilter
	view   *display.View // nil without a terminal
	// newest are the runs of the last page. known has, by run id, these and the runs that have
	// left the page and not ended. It is nil before the first poll.
	newest []contract.Task
	known  map[string]contract.Task
	pools  []contract.Pool
	// turn selects the next known run to read individually.
	turn int
	// trouble is the error of the last poll; empty after a success.
	trouble string
}

// watchRuns displays the newest runs and the pools. It returns nil when ctx ends.
func (a *app) watchRuns(ctx context.Context, c *client.Client, f runsFlags, filter contract.RunFilter) error {
	w := &watcher{app: a, flags: f, filter: filter}
	if len(filter.States) > 1 {
		w.filter.States = nil
	}
	w.client = c.WithRetry(math.MaxInt64, w.retrying)
	if a.Size != nil && !a.JSON {
		w.view = display.NewView(a.Stdout, a.Size)
	}
	err := w.loop(ctx)
	if w.view != nil {
		err = errors.Join(err, w.view.Close())
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // an interrupt ends the view
	}
	return err
}

func (w *watcher) loop(ctx context.Context) error {
	for pause := watchLeast; ; {
		changed, err := w.look(ctx)
		if err != nil {
			return err
		}
		if pause = min(pause*3/2, watchMost); changed {
			pause = watchLeast
		}
		for rest := pause; rest > 0; rest -= watchFrame {
			if w.view != nil {
				if err := w.view.Draw(w.page()); err != nil {
					return err
				}
			}
			if err := clock.Sleep(ctx, w.Clock, min(rest, watchFrame)); err != nil {
				return err
			}
			err := w.client.Probe(ctx)
			if err == nil && w.trouble != "" {
				break // it answers again
			}
			if err != nil && ctx.Err() == nil {
				w.retrying(err)
			}
		}
	}
}

// retrying displays a failed poll.
func (w *watcher) retrying(err error) {
	first := w.trouble == ""
	w.trouble = err.Error()
	switch {
	case w.view != nil:
		_ = w.view.Draw(w.page()) // the next refresh reports the failure
	case first:
		w.Note("%s; waiting for the server", w.trouble)
	}
}

// look polls the runs and pools and displays the changes. The first poll displays the runs that
// have not ended.
func (w *watcher) look(ctx context.Context) (changed bool, err error) {
	list, err := w.client.Tasks(ctx, client.Page{Filter: w.filter, Limit: watchRuns})
	if err != nil {
		return false, err
	}
	w.newest = slices.DeleteFunc(list.Tasks, func(t contract.Task) bool { return !w.flags.selects(t) })
	before := w.known
	w.known = map[string]contract.Task{}
	for _, t := range slices.Backward(w.newest) { // in the order of their creation
		w.known[t.RunID] = t
		old, seen := before[t.RunID]
		if seen && same(old, t) || before == nil && ended(t) {
			continue
		}
		changed = true
		if err := w.showRun(t); err != nil {
			return false, err
		}
	}
	left, err := w.lookAtOthers(ctx, before)
	if err != nil {
		return false, err
	}
	pools, err := w.lookAtPools(ctx)
	w.trouble = ""
	return changed || left || pools, err
}

// lookAtOthers reads runs that left the page before they ended.
func (w *watcher) lookAtOthers(ctx context.Context, before map[string]contract.Task) (changed bool, err error) {
	var ids []string
	for id, old := range before {
		if _, listed := w.known[id]; !listed && !ended(old) {
			ids = append(ids, id)
			w.known[id] = old
		}
	}
	slices.Sort(ids)
	for range min(len(ids), watchReads) {
		w.turn++
		id := ids[w.turn%len(ids)]
		t, err := w.client.Task(ctx, id)
		if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusNotFound {
			delete(w.known, id)
			continue
		}
		if err != nil {
			return false, err
		}
		if !same(before[id], t) {
			changed = true
			if err := w.showRun(t); err != nil {
				return false, err
			}
		}
		if w.known[id] = t; ended(t) || len(w.flags.states) > 0 && !slices.ContainsFunc(w.flags.states, func(s string) bool { return strings.EqualFold(s, t.State) }) {
			delete(w.known, id)
		}
	}
	return changed, nil
}

func (w *watcher) lookAtPools(ctx context.Context) (changed bool, err error) {
	list, err := w.client.Pools(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range list.Pools {
		if slices.ContainsFunc(w.pools, func(known contract.Pool) bool { return reflect.DeepEqual(known, p) }) {
			continue
		}
		changed = true
		if err := w.showPool(p); err != nil {
			return false, err
		}
	}
	w.pools = list.Pools
	return changed, nil
}

func ended(t contract.Task) bool { return run.State(t.State).Terminal() }

// same reports whether two records of a run are displayed alike.
func same(a, b contract.Task) bool {
	return a.State == b.State && a.Attempt == b.Attempt && (a.Cancel == nil) == (b.Cancel == nil)
}

// showRun displays a changed run: as a line, or as an object with --json.
func (w *watcher) showRun(t contract.Task) error {
	switch {
	case w.view != nil:
		return nil
	case w.JSON:
		return w.PrintLine(map[string]any{"run": t})
	}
	words := []string{w.Moment(w.Clock.Now()), t.RunID, t.State}
	if what := display.Brief(t); what != "" {
		words = append(words, what)
	}
	if t.Attempt > 1 {
		words = append(words, fmt.Sprintf("attempt %d", t.Attempt))
	}
	if t.Cancel != nil && !ended(t) {
		words = append(words, "cancel requested")
	}
	if reason := w.StateReason(t); reason != "" {
		words = append(words, reason)
	}
	return w.Say("%s\n", display.Clean(strings.Join(words, "  ")))
}

func (w *watcher) showPool(p contract.Pool) error {
	switch {
	case w.view != nil:
		return nil
	case w.JSON:
		return w.PrintLine(map[string]any{"pool": p})
	}
	return w.Say("%s\n", display.Clean(w.Moment(w.Clock.Now())+"  pool "+p.ID+"  "+poolUse(p)))
}

// poolUse formats the use of a pool.
func poolUse(p contract.Pool) string {
	use := fmt.Sprintf("%d running, %d queued", p.Held, p.Queued)
	if p.Limit > 0 {
		use = fmt.Sprintf("%d of %d running, %d queued", p.Held, p.Limit, p.Queued)
	}
	if p.Draining {
		use += ", draining"
	}
	return use
}

// page returns the lines for a terminal.
func (w *watcher) page() []string {
	now := w.Clock.Now()
	lines := []string{fmt.Sprintf("%s  %s  %s", w.Name+" runs", w.URL, w.Moment(now))}
	if w.trouble != "" {
		lines[0] = w.trouble + "; waiting for the server"
	}
	for _, p := range w.pools[:min(len(w.pools), watchPools)] {
		lines = append(lines, "pool "+p.ID+": "+poolUse(p))
	}
	if more := len(w.pools) - watchPools; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more pools", more))
	}
	t := display.NewTable("RUN", "STATE", "ATTEMPT", "QUEUE", "AGE", "WHAT", "REASON")
	for _, r := range w.newest[:min(len(w.newest), max(w.view.Rows()-len(lines)-2, 0))] {
		queue := ""
		if r.QueuePosition != nil {
			queue = fmt.Sprint(*r.QueuePosition)
		}
		t.Row(r.RunID, r.State, fmt.Sprint(r.Attempt), queue, w.age(r), display.Brief(r), w.StateReason(r))
	}
	var table bytes.Buffer
	_, _ = t.WriteTo(&table) // a buffer accepts everything
	return append(append(lines, ""), strings.Split(strings.TrimRight(table.String(), "\n"), "\n")...)
}
