package simulation

import (
	"cmp"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// limitChange is a change of a job's maxConcurrentRuns; 0 means no limit. If the job is gone,
// each run keeps its own limit.
type limitChange struct {
	at    time.Time
	limit int
	gone  bool
	// key is the concurrency key of its runs, and keyLimit the key's limit.
	key      string
	keyLimit int
}

// slotUse is the number of runs that hold or queue for slots of a job, since a time.
type slotUse struct {
	at    time.Time
	slots int
}

// noteLimit records the limit of a job's record.
func (w *world) noteLimit(m *jobModel) {
	c := limitChange{at: w.Time.Now, gone: m.record == nil}
	if m.record != nil {
		c.limit = m.record.Definition.MaxConcurrentRuns()
		if of := m.record.Run(w.Config.Policy).Concurrency; of != nil {
			c.key, c.keyLimit = of.Key, of.Limit
		}
	}
	if n := len(m.limits); n > 0 {
		last := m.limits[n-1]
		if last.at = c.at; last == c {
			return
		}
	}
	m.limits = append(m.limits, c)
}

// KeyLimitOf implements jobs. It returns the largest limit at which a run can get a slot of its key now.
func (w *world) KeyLimitOf(r *run.Run) int {
	most := r.Concurrency.Limit
	m := w.jobs[r.JobID]
	if m == nil {
		return most
	}
	since := w.Time.Now.Add(-w.limitSlack())
	for i, c := range m.limits {
		if recent := i+1 == len(m.limits) || !m.limits[i+1].at.Before(since); recent && c.key == r.Concurrency.Key {
			most = max(most, c.keyLimit)
		}
	}
	return most
}

// limitSlack is how long before a commit the limit of a job may have been read.
func (w *world) limitSlack() time.Duration {
	if w.Calm() {
		return 2 * time.Second
	}
	return harness.HookTime + 4*harness.Slowest + time.Minute
}

// limitsOf returns the smallest and largest limit at which a run can be admitted now. most is 0
// if the run may need no slot; least may then be 0, too.
func (w *world) limitsOf(r *run.Run) (least, most int) {
	return w.limitsSince(r, w.Time.Now.Add(-w.limitSlack()))
}

// limitsSince returns the limits at which a run could have been admitted since a time.
func (w *world) limitsSince(r *run.Run, since time.Time) (least, most int) {
	own := r.Constraints.MaxConcurrentRuns
	m := w.jobs[r.JobID]
	if own == 0 || m == nil {
		return own, own
	}
	none := false
	// A later job with the id of a deleted one does not limit the earlier job's runs.
	later := len(m.limits)
	if m.record != nil && !m.record.OwnsVersion(r.JobVersion) {
		for later > 0 && !m.limits[later-1].gone {
			later--
		}
	}
	for i, c := range m.limits {
		if i+1 < len(m.limits) && m.limits[i+1].at.Before(since) {
			continue
		}
		limit := c.limit
		if c.gone || i >= later {
			limit = own
		}
		none = none || limit == 0
		if least == 0 || limit < least {
			least = limit
		}
		most = max(most, limit)
	}
	if none {
		most = 0
	}
	return least, most
}

// passes reports whether the action of a run lets it start despite violated constraints.
func passes(r *run.Run) bool {
	return r.Acting != nil && (r.Acting.Type == spec.ActionWebhook || r.Acting.Type == spec.ActionTriggerJob)
}

// needsOnlySlot reports whether no other run of the job may hold a slot together with the run.
func needsOnlySlot(r *run.Run) bool {
	return r.Constraints != nil && r.Constraints.RequirePreviousSuccess && !passes(r) && !violated(r, spec.RequirePreviousSuccess)
}

func needsPrevious(r *run.Run) bool {
	return r.Constraints != nil && r.Constraints.RequirePreviousSuccess
}

// holdsJobSlot reports whether a run counts against the limit of its job.
func holdsJobSlot(r *run.Run) bool {
	return !r.State.Terminal() && r.JobSlot.State == platform.SlotHeld && r.JobSlot.Limit > 0
}

// contends reports whether a run holds or queues for a slot of its job.
func contends(r *run.Run) bool {
	return holdsJobSlot(r) || !r.State.Terminal() && r.JobSlot.State == platform.SlotQueued
}

// noteUse records how many slots of the job are used, including those used since the last
// check.
func (w *world) noteUse(m *jobModel) {
	n := 0
	for _, r := range w.Records.Ordered {
		was := w.Last[r.ID]
		ended := r.State.Terminal() && r.Attempt.Number > 0 && (was == nil || !was.State.Terminal())
		if r.JobID == m.id && (contends(r) || ended || was != nil && contends(was)) {
			n++
		}
	}
	if last := len(m.uses) - 1; last < 0 || m.uses[last].slots != n {
		m.uses = append(m.uses, slotUse{w.Time.Now, n})
	}
}

// mostUsed returns the largest number of used slots since a time.
func (m *jobModel) mostUsed(since time.Time) (most int) {
	for i, u := range m.uses {
		if i+1 == len(m.uses) || !m.uses[i+1].at.Before(since) {
			most = max(most, u.slots)
		}
	}
	return most
}

// tookJobAfter reports whether a run may have taken its slot of the job after another run.
func (w *world) tookJobAfter(r, other *run.Run) bool {
	return !r.JobSlot.Since.Before(other.JobSlot.Since.Add(-2 * w.Plan.Skew))
}

// queuedForJob reports whether a run with a slot of its job was in the job's queue before. It
// can leave the queue in the commit after the one in which it joined.
func queuedForJob(before, r *run.Run) bool {
	if before.JobSlot.State == platform.SlotQueued {
		return true
	}
	if r.Acting == nil || !r.Acting.Done && !r.Acting.Due {
		return false
	}
	switch r.Acting.Type {
	case spec.ActionKillOld, spec.ActionWait, spec.ActionRetryLater:
		return true
	}
	return violated(r, spec.MaxConcurrentRuns)
}

// placeOf returns the place of a run in the queue of its job: its scheduled time, or else its
// creation.
func placeOf(r *run.Run) time.Time {
	if r.ScheduledAt.After(r.CreatedAt) {
		return r.ScheduledAt
	}
	return r.CreatedAt
}

// older compares the places of two runs of a job. Runs that catch up can have the same place.
func older(a, b *run.Run) bool {
	return cmp.Or(placeOf(a).Compare(placeOf(b)), a.ScheduledAt.Compare(b.ScheduledAt), cmp.Compare(a.ID, b.ID)) < 0
}

// checkJobGrant checks that a run takes a slot of its job only within the current limit, and
// not before a run that has waited longer.
func (w *world) checkJobGrant(before, r *run.Run) {
	if before.Attempt.Number > 0 {
		w.checkCounted(r)
		return
	}
	held := 0
	for _, other := range w.Records.Ordered {
		later := other.ID != r.ID && other.JobSlot.Limit > r.JobSlot.Limit && w.tookJobAfter(other, r)
		if other.JobID == r.JobID && holdsJobSlot(other) && !later {
			held++
		}
	}
	_, most := w.limitsOf(r)
	if r.JobSlot.Limit > 0 && (held > r.JobSlot.Limit || most > 0 && r.JobSlot.Limit > max(most, 1)) {
		w.Fail("%s took one of %d slots of its job with %d others, want at most %d in all", r.ID, r.JobSlot.Limit, held-1, most)
	}
	if r.JobSlot.Limit != 1 && needsOnlySlot(r) {
		w.Fail("%s took one of %d slots of its job, and needs the only one", r.ID, r.JobSlot.Limit)
	}
	w.checkJobOrder(before, r)
}

// checkCounted checks that a run that has begun gets a slot of its job only after the job got a
// limit.
func (w *world) checkCounted(r *run.Run) {
	m := w.jobs[r.JobID]
	if m == nil || len(m.limits) < 2 || m.limits[len(m.limits)-1].limit == 0 && w.Calm() {
		w.Fail("%s got a slot after it had begun, and its job has no new limit", r.ID)
	}
}

// checkJobOrder checks that no run overtakes one that is queued for a slot of its job.
func (w *world) checkJobOrder(before, r *run.Run) {
	queued := queuedForJob(before, r)
	for _, other := range w.Records.Ordered {
		was := w.Last[other.ID]
		if other.ID == r.ID || other.JobID != r.JobID || other.JobSlot.State != platform.SlotQueued || was == nil || was.JobSlot.State != platform.SlotQueued {
			continue
		}
		if w.Plan.SlowCommits+w.Plan.ServiceFaults > 0 && w.Time.Now.Sub(w.FactsOf(other).JobQueuedAt) < 2*harness.Slowest {
			continue
		}
		// A run that does not queue takes a slot only if no run is queued.
		if !queued || older(other, r) {
			w.Fail("%s got a slot of its job before %s, which is queued since %s", r.ID, other.ID, placeOf(other).Sub(harness.Start))
		}
	}
}

// checkRefused checks that a run is refused a slot of its job only if no slot was free.
func (w *world) checkRefused(before, r *run.Run) {
	m := w.jobs[r.JobID]
	v := violation(r, spec.MaxConcurrentRuns)
	if v == nil || m == nil || m.record == nil || !w.Calm() || r.State.Terminal() && !r.Skipped {
		return
	}
	if before != nil {
		if was := violation(before, spec.MaxConcurrentRuns); was != nil && was.At.Equal(v.At) {
			return
		}
	}
	least, _ := w.limitsOf(r)
	others := m.mostUsed(w.Time.Now.Add(-w.limitSlack()))
	for _, other := range w.Records.Ordered {
		// A run that needs the only slot is queued while others are free, and must not be
		// overtaken.
		if other.JobID == r.JobID && other.ID != r.ID && needsPrevious(other) && (contends(other) || w.Last[other.ID] != nil && contends(w.Last[other.ID])) {
			return
		}
	}
	if least > 0 && others < least {
		w.Fail("%s found no slot of its job, and %d of %d were used", r.ID, others, least)
	}
	if least == 0 {
		w.Fail("%s found no slot of a job without a limit", r.ID)
	}
}

// checkIdleJobs checks that no run waits for a slot of its job while one is free.
func (w *world) checkIdleJobs() {
	for _, id := range w.jobIDs {
		m := w.jobs[id]
		if m == nil {
			continue
		}
		var first *run.Run
		held := 0
		for _, r := range w.Records.Ordered {
			switch {
			case r.JobID != id:
			case holdsJobSlot(r):
				held++
			case r.AwaitsJobSlot() && (first == nil || older(r, first)):
				first = r
			}
		}
		if first == nil || m.record == nil {
			m.idleSince = time.Time{}
			continue
		}
		slots := first.JobLimit(m.record.Definition.MaxConcurrentRuns())
		if !m.record.OwnsVersion(first.JobVersion) { // the run belongs to a deleted job with the same id
			slots = first.JobLimit(first.Constraints.MaxConcurrentRuns)
		}
		if slots > 0 && held >= slots {
			m.idleSince = time.Time{}
			continue
		}
		if m.idleSince.IsZero() {
			m.idleSince = w.Time.Now
		}
		bound := 5 * time.Second
		if late := w.Overdue(m.idleSince, bound, bound+w.Patience()); late > 0 {
			w.Fail("%s waits for a slot of its job, of which %d of %d are held since %s", first.ID, held, slots, late+bound)
		}
	}
}
