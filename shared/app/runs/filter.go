package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Filter selects runs that match each of its fields. The zero value of a field matches
// all runs.
type Filter struct {
	// IDs are run ids or task ids of a bulk request.
	IDs []string
	// Kind is a kind of spec.Work, or spec.KindProgram.
	JobID, Kind, Pool string
	// Trigger selects the children of the job, if JobID is set and it is run.TriggerFan. Otherwise
	// JobID selects none of them.
	Trigger run.Trigger
	States  []run.State
	// Skipped selects the runs that were skipped, or the others.
	Skipped *bool
	// Fault is the code of the run's failure.
	Fault fault.Code
	// Error is a text that the message of the run's failure contains, in any case.
	Error string
	// Labels selects runs by their labels.
	Labels label.Selector
	// CreatedAfter and CreatedBefore are exclusive.
	CreatedAfter, CreatedBefore time.Time
}

// matches reports whether the filter selects the run.
func (f Filter) matches(r *run.Run) bool {
	return (len(f.IDs) == 0 || slices.Contains(f.IDs, r.ID) || slices.Contains(f.IDs, r.TaskID)) &&
		(f.JobID == "" || f.JobID == r.JobID) && f.matchesKind(r) && (f.Pool == "" || f.Pool == r.Slot.Pool) &&
		(f.Trigger == "" || f.Trigger == r.Trigger) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(f.Skipped == nil || *f.Skipped == r.Skipped) &&
		(f.Fault == "" || r.Fault != nil && r.Fault.Code == f.Fault) &&
		(f.Error == "" || r.Fault != nil && strings.Contains(strings.ToLower(r.Fault.Message), strings.ToLower(f.Error))) &&
		f.Labels.Matches(r.Labels) &&
		(f.CreatedAfter.IsZero() || r.CreatedAt.After(f.CreatedAfter)) &&
		(f.CreatedBefore.IsZero() || r.CreatedAt.Before(f.CreatedBefore))
}

func (f Filter) matchesKind(r *run.Run) bool {
	if f.Kind == spec.KindProgram {
		return r.Work.Kind == spec.KindJob && r.JobID == ""
	}
	return f.Kind == "" || f.Kind == r.Work.Kind
}

// mostPages is the maximum number of pages of the store that are read for one page of selected
// runs.
const mostPages = 20

// selection is a page of the runs that a filter selects.
type selection struct {
	runs []*run.Run
	// next is the cursor of the next page; empty on the last one.
	next string
	// until is the creation time of the last run that was read for the page; zero on the last page.
	// The page has all selected runs that were created after it.
	until time.Time
}

// selected reads a page of the runs that a filter selects, newest first. The page may
// be short although more runs follow: next is then not empty.
func (s *Records) selected(ctx context.Context, tenant string, page port.Page, f Filter) (found selection, err error) {
	page.JobID, page.Children, page.Before = f.JobID, f.JobID != "" && f.Trigger == run.TriggerFan, f.CreatedBefore
	switch {
	case len(f.States) == 1:
		page.State = f.States[0]
	case f.Skipped != nil && *f.Skipped: // skipped runs are Completed
		page.State = run.Completed
	}
	wanted := page.Limit
	for range mostPages {
		listed, next, err := s.store.List(ctx, tenant, page)
		if err != nil {
			return selection{}, fmt.Errorf("cannot list the runs: %w", err)
		}
		for i := range listed { // a run is too large to be copied several times
			r := &listed[i]
			if r.CreatedAt.Before(f.CreatedAfter) { // the following ones are older too
				return selection{runs: found.runs}, nil
			}
			if f.matches(r) {
				found.runs = append(found.runs, r)
			}
			found.until = r.CreatedAt
		}
		if next == "" {
			return selection{runs: found.runs}, nil
		}
		found.next, page.Cursor, page.Limit = next, next, wanted-len(found.runs)
		if page.Limit <= 0 {
			break
		}
	}
	return found, nil
}
