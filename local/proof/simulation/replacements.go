package simulation

import (
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// checkReplaced checks that kill_old ends only older runs of the same job, and only as many as
// needed.
func (w *world) checkReplaced(r *run.Run) {
	job, replaced := strings.CutPrefix(r.Cancel.By, "job:")
	if !replaced {
		return
	}
	if w.fan != nil {
		if r.Child == nil {
			w.Fail("%s was cancelled by %s", r.ID, job)
		}
		return
	}
	if w.graph != nil {
		w.checkRestCancelled(r, job)
		return
	}
	newer := w.Records.ByID[r.Cancel.Reason[strings.LastIndex(r.Cancel.Reason, " ")+1:]]
	switch {
	case newer == nil || newer.JobID != r.JobID || job != r.JobID:
		w.Fail("%s of job %s was replaced by %s: %s", r.ID, r.JobID, r.Cancel.By, r.Cancel.Reason)
		return
	case !older(r, newer):
		w.Fail("%s was replaced by %s, which is older", r.ID, newer.ID)
	case !slices.ContainsFunc(actionsOf(newer), func(a spec.Action) bool { return a.Type == spec.ActionKillOld }):
		w.Fail("%s was replaced by %s, which has no kill_old", r.ID, newer.ID)
	}
	if !w.Calm() {
		return
	}
	newest := 0
	for _, other := range w.Records.Ordered {
		was := w.Last[other.ID]
		if was == nil {
			was = &run.Run{}
		}
		passed := other.State.Terminal() && !was.State.Terminal() && other.Attempt.Number > 0 // it has begun and ended since the last check
		if other.JobID == r.JobID && other.ID != r.ID && older(r, other) && (other.ID == newer.ID || contends(other) || contends(was) || passed) {
			newest++
		}
	}
	least, _ := w.limitsOf(newer)
	if own, _ := w.limitsOf(r); own > 0 && own < least {
		least = own // each run of a deleted job has its own limit: one that newer runs leave no slot ends itself
	}
	if needsPrevious(newer) || needsPrevious(r) {
		least = 1
	}
	if newest < least {
		w.Fail("%s was replaced with %d newer runs of its job, want at least %d", r.ID, newest, least)
	}
}

// checkReplacing checks that a waiting run with kill_old has requested the end of the runs that
// block it.
func (w *world) checkReplacing(r *run.Run) {
	facts := w.FactsOf(r)
	if !r.AwaitsJobSlot() || r.Acting.Type != spec.ActionKillOld || w.Overdue(facts.JobQueuedAt, 5*time.Second, w.Patience()) == 0 {
		return
	}
	newest, inTheWay := 1, ""
	_, most := w.limitsSince(r, facts.JobQueuedAt.Add(-w.limitSlack())) // a lowered limit ends no run
	if r.Constraints.RequirePreviousSuccess {
		most = 1
	}
	for _, other := range slices.Backward(w.Records.Ordered) {
		if other.JobID != r.JobID || other.ID == r.ID || !contends(other) || other.Cancel != nil {
			continue
		}
		if !w.FactsOf(other).ContendsSince.Before(facts.JobQueuedAt) {
			continue // the run did not see that one
		}
		if newest++; older(other, r) && newest > most {
			inTheWay = other.ID
		}
	}
	if most > 0 && inTheWay != "" {
		w.Fail("%s waits by kill_old for %s, whose end was not requested", r.ID, inTheWay)
	}
}
