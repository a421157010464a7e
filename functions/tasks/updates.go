package tasks

import (
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// updates serves a page of the updates of a run. An update depends on earlier events, so all
// events are read.
func updates(svc *runs.Queries, w http.ResponseWriter, r *http.Request) error {
	after, err := httpkit.IntQuery(r, "after", 0, math.MaxInt32, 0)
	if err != nil {
		return err
	}
	limit, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	run, events, err := svc.History(r.Context(), httpkit.CallerOf(r.Context()), idOf(r))
	if err != nil {
		return fmt.Errorf("cannot read the updates: %w", err)
	}
	all := api.Updates(run, events)
	first := slices.IndexFunc(all, func(u contract.RunUpdate) bool { return u.Seq > after })
	answer := contract.RunUpdates{Updates: []contract.RunUpdate{}}
	if first >= 0 {
		answer.Updates = all[first:]
	}
	if len(answer.Updates) > limit {
		answer.Updates = answer.Updates[:limit]
		answer.NextAfter = answer.Updates[limit-1].Seq
	}
	return httpkit.WriteJSON(w, http.StatusOK, answer)
}
