package fake

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// witness stores the newest record of each run that the store has returned or stored, and
// compares writes with it.
type witness struct {
	report func(error)
	mu     sync.Mutex
	seen   map[run.Ref]run.Run
}

// saw updates the stored record of the run if r is newer.
func (w *witness) saw(r run.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.seen[r.Ref()]; !ok || known.Version < r.Version || known.CreatedAt.Before(r.CreatedAt) {
		w.seen[r.Ref()] = r
	}
}

func (w *witness) creates(first port.Write, key *port.IdempotencyKey) {
	r := first.Run
	misuse := w.misuse("create", r)
	if key != nil {
		if n := utf8.RuneCountInString(key.Key); n < 1 || n > 255 {
			misuse("under a key of %d characters", n)
		}
	}
	if r.Tenant == "" || r.ID == "" || r.TaskID == "" {
		misuse("without a tenant, an id or a task id")
	}
	if r.Version != 0 {
		misuse("with version %d, want 0", r.Version)
	}
	switch {
	case r.State == run.Pending, r.State == run.PreRun, r.State == run.Completed && r.Skipped:
	case r.State == run.Running && r.Work.Inference != nil: // the process that has accepted it is its worker
		if want := leaseOf(platform.Slot{}, r.Slot); first.Lease != want {
			misuse("with the lease change %q, but its slot needs %q", first.Lease, want)
		}
		if first.Heartbeat.Open == nil {
			misuse("in Running without a heartbeat item")
		}
	default:
		misuse("in %s", r.State)
	}
	if len(first.Events) == 0 || first.Events[0].Seq != 1 {
		misuse("without its first event")
	}
	numbered(first, misuse)
	balances(nil, first.Run.Reservation, first.Ledger, misuse)
}

func (w *witness) commits(writes []port.Write) {
	if len(writes) == 0 {
		w.report(fmt.Errorf("misuse: an empty commit"))
	}
	refs := map[run.Ref]bool{}
	for _, each := range writes {
		misuse := w.misuse("commit", each.Run)
		if refs[each.Run.Ref()] {
			misuse("twice in one commit")
		}
		refs[each.Run.Ref()] = true
		numbered(each, misuse)
		w.mu.Lock()
		known, ok := w.seen[each.Run.Ref()]
		w.mu.Unlock()
		switch {
		case !ok:
			misuse("that the store never returned")
		case each.Run.Version < 1 || each.Run.Version > known.Version:
			misuse("on version %d; the newest version returned is %d", each.Run.Version, known.Version)
		case each.Run.Version == known.Version:
			follows(known, each, misuse)
		}
		// A write of an older version has lost a race, which is allowed.
	}
}

// numbered checks that the numbers of the events have no gaps and end at the event count of the
// record.
func numbered(w port.Write, misuse func(string, ...any)) {
	for i, e := range w.Events {
		if want := w.Run.EventCount - len(w.Events) + 1 + i; e.Seq != want || e.ID == "" {
			misuse("with event %d (id %q), want number %d", e.Seq, e.ID, want)
		}
	}
}

// follows checks that the write is a legal successor of the record on which it is based.
func follows(before run.Run, w port.Write, misuse func(string, ...any)) {
	if gap := w.Run.EventCount - len(w.Events) - before.EventCount; gap != 0 {
		misuse("with %d events, but the event count changes from %d to %d", len(w.Events), before.EventCount, w.Run.EventCount)
	}
	state := before.State
	for _, e := range w.Events {
		if e.From != state || (e.From != e.State && !e.From.CanBecome(e.State)) {
			misuse("with an event from %s to %s while it is in %s", e.From, e.State, state)
		}
		state = e.State
	}
	if state != w.Run.State {
		misuse("in %s, but its events lead to %s", w.Run.State, state)
	}
	if want := leaseOf(before.Slot, w.Run.Slot); w.Lease != want {
		misuse("with the lease change %q, but its slot needs %q", w.Lease, want)
	}
	if want := leaseOf(before.JobSlot, w.Run.JobSlot); w.JobLease != want {
		misuse("with the lease change %q of its job, but its slot needs %q", w.JobLease, want)
	}
	if want := leaseOf(before.KeySlot, w.Run.KeySlot); w.KeyLease != want {
		misuse("with the lease change %q of its key, but its slot needs %q", w.KeyLease, want)
	}
	balances(before.Reservation, w.Run.Reservation, w.Ledger, misuse)
	if before.JobID != w.Run.JobID {
		misuse("with job %q, which was %q", w.Run.JobID, before.JobID)
	}
}

// leaseOf returns the lease change between two states of a slot. A pool without a limit has a
// queue but no slots.
func leaseOf(before, now platform.Slot) run.LeaseChange {
	had, has := before.State, now.State
	if before.Limit <= 0 && had != platform.SlotQueued {
		had = ""
	}
	if now.Limit <= 0 && has != platform.SlotQueued {
		has = ""
	}
	switch {
	case had == has:
		return ""
	case had == platform.SlotQueued && has == platform.SlotHeld:
		return run.LeaseGrant
	case had == platform.SlotQueued:
		return run.LeaseDequeue
	case had == platform.SlotHeld && has == platform.SlotQueued:
		return run.LeaseRequeue
	case had == platform.SlotHeld:
		return run.LeaseRelease
	case has == platform.SlotQueued:
		return run.LeaseEnqueue
	}
	return run.LeaseTake
}

func (w *witness) saves(j job.Job) {
	misuse := w.misuse("save", run.Run{ID: j.ID})
	if j.Tenant == "" || j.ID == "" || j.CreatedAt.IsZero() {
		misuse("of a job without a tenant, an id or a time of creation")
	}
	if j.Version < 1 || j.Revision < 0 || j.Revision == 0 && j.Version != max(j.FirstVersion, 1) {
		misuse("of a job with version %d on revision %d", j.Version, j.Revision)
	}
	if !j.WakeAt.IsZero() && j.WakeAt.Before(j.NextAt) {
		misuse("of a job that wakes before its next firing")
	}
}

func (w *witness) savesPool(p platform.Pool) {
	misuse := w.misuse("save", run.Run{ID: p.ID})
	if p.Tenant == "" || p.ID == "" || p.CreatedAt.IsZero() || p.Version < 0 {
		misuse("of a pool without a tenant, an id or a time of creation, or on version %d", p.Version)
	}
	if !p.DrainBy.IsZero() && !p.Draining {
		misuse("of a pool with a deadline that does not drain")
	}
}

func (w *witness) fires(j job.Job, firings []port.Write) {
	for _, each := range firings {
		w.creates(each, nil)
		if r := each.Run; r.Tenant != j.Tenant || r.JobID != j.ID || r.JobVersion != j.Version {
			w.misuse("firing", r)("of version %d of job %s, in a commit of version %d of %s", r.JobVersion, r.JobID, j.Version, j.ID)
		}
	}
	if len(firings) > port.MaxFirings {
		w.report(fmt.Errorf("misuse: %d firings in one commit", len(firings)))
	}
}

func (w *witness) misuse(doing string, r run.Run) func(string, ...any) {
	return func(how string, args ...any) {
		w.report(fmt.Errorf("misuse: %s of run %s %s", doing, r.ID, fmt.Sprintf(how, args...)))
	}
}
