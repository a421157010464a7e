package simulation

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// check holds the system to its promises as it stands now.
func (w *world) check(ctx context.Context) {
	if w.process.dead {
		return
	}
	held := 0
	records := w.records(ctx)
	known := make(map[string]*run.Run, len(records))
	for _, r := range records {
		known[r.ID] = r
		if r.Slot.State == run.SlotHeld {
			held++
		}
		w.checkStep(r)
		w.checkVerdict(r)
	}
	if limit := w.config.MaxMachines; limit > 0 && held > limit {
		w.broken("%d slots of %d are held", held, limit)
	}
	queued := 0
	for _, p := range w.rows.pools {
		queued += p.Queued
		if p.Held != held {
			w.broken("%d leases for %d runs that hold a slot", p.Held, held)
		}
	}
	w.checkMachines(known)
	if w.plan.kind() && w.plan.slowCommits == 0 {
		w.checkPace(known, held, queued)
	}
}

// How long a slot may be free while somebody waits, and how long an attempt that
// is over may take to be cleaned up where its machine is not stuck.
const (
	idleMost  = time.Second
	clearMost = 40 * time.Second
)

// checkPace holds a world in which nothing of ours fails to its pace: what is
// committed wakes whom it concerns, and nothing is left to time limits and the
// sweep.
func (w *world) checkPace(known map[string]*run.Run, held, queued int) {
	switch {
	case queued == 0 || held == w.config.MaxMachines:
		w.idleSince = time.Time{}
	case w.idleSince.IsZero():
		w.idleSince = w.time.now
	case w.time.now.Sub(w.idleSince) > idleMost:
		w.broken("%d wait while %d slots of %d are held", queued, held, w.config.MaxMachines)
	}
	for _, r := range known {
		w.checkCancel(r)
		if took := w.time.now.Sub(r.EnteredAt); r.State == run.Terminating && took > clearMost && w.plan.stuck == 0 {
			w.broken("%s is cleaned up for %s", r.ID, took)
		}
	}
}

// lingering is how long a machine may outlive its attempt: two sweeps, and what
// the platform takes.
const lingering = 2*sweepEvery + 4*time.Minute

func (w *world) checkMachines(known map[string]*run.Run) {
	for i := range w.machines.made {
		m := w.machines.byID[fmt.Sprintf("app/m%d", i+1)]
		r, ok := known[m.spec.Owner.RunID]
		wanted := ok && r.State.HasMachine() && r.Attempt.Number == m.spec.Owner.Attempt && (r.Attempt.MachineID == "" || r.Attempt.MachineID == m.id)
		switch {
		case !ok || !m.alive() || wanted:
			m.unwantedAt = time.Time{}
			continue
		case m.unwantedAt.IsZero():
			m.unwantedAt = w.time.now
		}
		since := m.unwantedAt
		if w.upSince.After(since) {
			since = w.upSince
		}
		if lives := w.time.now.Sub(since); lives > lingering && !w.wild() {
			w.broken("%s of attempt %d of %s still runs %s after anybody wanted it", m.id, m.spec.Owner.Attempt, r.ID, lives)
		}
	}
}

// wild says whether the world is so bad that sweeps may fail in a row.
func (w *world) wild() bool { return w.plan.lostCalls > 0.05 || w.plan.lostCommits > 0.05 }

// checkEnd holds what is left at the end to what was promised.
func (w *world) checkEnd(ctx context.Context) {
	if w.process.dead {
		if err := w.restart(ctx); err != nil {
			w.broken("%v", err)
			return
		}
	}
	for _, task := range w.accepts {
		if _, err := w.process.store.Find(ctx, client.Tenant, task); err != nil {
			w.broken("%s was accepted and is lost: %v", task, err)
		}
	}
	w.checkList(ctx)
	records := w.records(ctx)
	if len(records) > w.requests+w.retried {
		w.broken("%d runs were made of %d requests", len(records), w.requests)
	}
	for _, r := range records {
		w.checkRun(ctx, r)
	}
	if len(w.problems) > 0 {
		return
	}
	for _, m := range w.machines.byID {
		if m.alive() {
			w.broken("%s is left running", m.id)
		}
	}
	// Workers upload while their machine runs, and it is seen gone before the
	// bucket is cleared; but for a machine that nobody was told of, and that
	// ends before a sweep sees it, and for an orphan whose uploads could not be
	// removed at once. The bucket's own lifecycle rule is for those.
	allowed, left := w.strays, len(w.buckets.buckets[port.Uploads])
	for _, r := range records {
		if report := r.Attempt.Report; r.State == run.Completed && report.Upload == nil {
			left -= w.uploads(r.TaskID) // what such a worker leaves is its own affair
		}
		if r.State == run.Orphaned && w.plan.lostCalls > 0 {
			allowed++
		}
	}
	if left > allowed {
		w.broken("%d uploads are left in the bucket", left)
	}
}

// uploads counts what lies in the bucket of a task.
func (w *world) uploads(task string) (count int) {
	for key := range w.buckets.buckets[port.Uploads] {
		if strings.HasPrefix(key, limit.OutputPrefix(task)) {
			count++
		}
	}
	return count
}

func (w *world) checkRun(ctx context.Context, r *run.Run) {
	if !r.State.Terminal() {
		w.broken("%s never ended: %s", r.ID, r.State)
		return
	}
	events, err := w.process.store.Events(ctx, r.Ref(), 0, 1000)
	if err != nil {
		w.broken("the events of %s cannot be read: %v", r.ID, err)
	}
	ends := 0
	for i, e := range events {
		if e.Seq != i+1 {
			w.broken("the events of %s have a gap at %d", r.ID, i+1)
		}
		if e.From == e.State || i == 0 {
			continue
		}
		if e.From != events[i-1].State || !e.From.CanBecome(e.State) {
			w.broken("%s went from %s to %s", r.ID, e.From, e.State)
		}
		if e.State.Terminal() {
			ends++
		}
	}
	if ends != 1 || len(events) != r.EventCount {
		w.broken("%s has %d ends in %d of %d events", r.ID, ends, len(events), r.EventCount)
	}
	if w.plan.unforeseen+w.plan.aborts == 0 && (r.Execution.Start > 1 || r.Fault != nil && r.Fault.Code == fault.Internal) {
		w.broken("%s ends in a way that nobody foresaw: %v", r.ID, r.Fault)
	}
	w.checkWord(r)
	var kept []byte
	isKept := false
	for key, body := range w.buckets.buckets[port.Accepted] {
		if strings.HasPrefix(key, limit.OutputPrefix(r.TaskID)) {
			isKept = true
			if r.Output != nil && r.Output.Key == key {
				kept = body
			}
		}
	}
	switch {
	case r.Output != nil && !bytes.Equal(kept, outputOf(r.TaskID, r.Attempt.Number)):
		w.broken("%s keeps %q, and attempt %d was accepted", r.ID, kept, r.Attempt.Number)
	case r.Output == nil && isKept:
		w.broken("%s keeps an output that nobody is served", r.ID)
	case r.State == run.Completed && !w.facts(r.TaskID, r.Attempt.Number).good && !w.mayLoseAnswers():
		w.broken("%s is Completed, and no success was acknowledged", r.ID)
	}
}

// mayLoseAnswers says whether a commit may have been made that nobody was told
// of.
func (w *world) mayLoseAnswers() bool {
	return !w.plan.kind()
}
