// Package activity serves /v1/activity: figures of the runs of a tenant in a window.
package activity

import (
	"fmt"
	"net/http"

	figures "github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/activity"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// DefaultWindow is the window of a request without one.
const DefaultWindow = "24h"

// Routes returns the route of the figures.
func Routes(svc *figures.Tally) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodGet, Pattern: "/v1/activity", Access: httpkit.ForClients, Scope: access.RunsRead, Query: []string{"window"},
		Handle: func(w http.ResponseWriter, r *http.Request) error {
			window := DefaultWindow
			if query := r.URL.Query(); query.Has("window") {
				window = query.Get("window")
			}
			f, err := svc.Figures(r.Context(), httpkit.CallerOf(r.Context()), window)
			if err != nil {
				return fmt.Errorf("cannot read the figures of runs: %w", err)
			}
			return httpkit.WriteJSON(w, http.StatusOK, document(f))
		},
	}}
}

// document returns the figures as clients see them.
func document(f figures.Figures) contract.Activity {
	all := f.Total
	a := contract.Activity{
		Window: f.Window.Name, Since: f.Slots[0].From, CountedUntil: f.Until, Runs: counts(all.Counts), GroupsComplete: !all.Partial,
		Complete: f.Whole, Slots: []contract.ActivitySlot{}, Failures: []contract.ActivityFailure{}, Work: []contract.ActivityWork{},
	}
	if a.CountedSince = a.Since; !f.Since.IsZero() {
		a.CountedSince = f.Since
	}
	for _, s := range f.Slots {
		slot := contract.ActivitySlot{From: s.From, Until: s.From.Add(f.Window.Length), Runs: counts(s.Counts)}
		if s.Spent != nil {
			spent := contract.BudgetUse(*s.Spent)
			slot.Spent = &spent
		}
		a.Slots = append(a.Slots, slot)
	}
	for _, c := range all.Causes {
		a.Failures = append(a.Failures, contract.ActivityFailure{
			Code: c.Code, State: string(c.State), Kind: c.Kind, JobID: c.JobID, Runs: c.Runs,
			FirstAt: c.First.UTC(), LastAt: c.Last.UTC(), LastRunID: c.LastRun, LastMessage: c.Message,
		})
	}
	for _, u := range all.Works {
		a.Work = append(a.Work, contract.ActivityWork{
			Kind: u.Kind, JobID: u.JobID, Runs: u.Runs, Failed: u.Failed, FirstAttemptFailed: u.FirstFailed,
			P50Seconds: u.Seconds(0.5), P95Seconds: u.Seconds(0.95),
		})
	}
	return a
}

func counts(c activity.Counts) contract.ActivityCounts {
	return contract.ActivityCounts{
		Created: c.Created, UnderWay: max(c.Created-c.Completed-c.Skipped-c.Cancelled-c.Failed, 0),
		Completed: c.Completed, Skipped: c.Skipped, Cancelled: c.Cancelled, Failed: c.Failed, Children: c.Children,
	}
}
