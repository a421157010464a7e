package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Filter selects runs that match each of its fields. The zero value of a field matches
// all runs.
type Filter struct {
	JobID, Kind, Pool string
	States            []run.State
	// Skipped selects the runs that were skipped, or the others.
	Skipped *bool
	// Fault is the code of the run's failure.
	Fault fault.Code
	// CreatedAfter and CreatedBefore are exclusive.
	CreatedAfter, CreatedBefore time.Time
}

// matches reports whether the filter selects the run.
func (f Filter) matches(r run.Run) bool {
	return (f.JobID == "" || f.JobID == r.JobID) && (f.Kind == "" || f.Kind == r.Work.Kind) && (f.Pool == "" || f.Pool == r.Slot.Pool) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(f.Skipped == nil || *f.Skipped == r.Skipped) &&
		(f.Fault == "" || r.Fault != nil && r.Fault.Code == f.Fault) &&
		(f.CreatedAfter.IsZero() || r.CreatedAt.After(f.CreatedAfter)) &&
		(f.CreatedBefore.IsZero() || r.CreatedAt.Before(f.CreatedBefore))
}

// mostPages is the maximum number of pages of the store that are read for one page of selected
// runs.
const mostPages = 10

// selected reads a page of the runs that a filter selects, newest first. The page may
// be short although more runs follow: next is then not empty.
func (s *Records) selected(ctx context.Context, tenant string, page port.Page, f Filter) (runs []run.Run, next string, err error) {
	page.JobID = f.JobID
	switch {
	case len(f.States) == 1:
		page.State = f.States[0]
	case f.Skipped != nil && *f.Skipped: // skipped runs are Completed
		page.State = run.Completed
	}
	wanted := page.Limit
	for range mostPages {
		found, after, err := s.store.List(ctx, tenant, page)
		if err != nil {
			return nil, "", fmt.Errorf("cannot list the runs: %w", err)
		}
		for _, r := range found {
			if r.CreatedAt.Before(f.CreatedAfter) { // the following ones are older too
				return runs, "", nil
			}
			if f.matches(r) {
				runs = append(runs, r)
			}
		}
		next, page.Cursor, page.Limit = after, after, wanted-len(runs)
		if after == "" || page.Limit <= 0 {
			break
		}
	}
	return runs, next, nil
}
