package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Tag returns the entity tag of a version of a run, with its quotes.
func Tag(r run.Run) string { return fmt.Sprintf(`"%d"`, r.Version) }

// Label changes the labels of a run in any state, and returns the record after the change.
// Faults: NotFound as for Queries.Task, PreconditionFailed, InvalidRequest with the field.
func (s *Requests) Label(ctx context.Context, who port.Identity, taskID string, labels label.Change, required change.Precondition) (run.Run, error) {
	r, err := s.find(ctx, who, taskID)
	if err != nil {
		return run.Run{}, err
	}
	var refused error
	r, err = s.applyTo(ctx, r, func(newest run.Run) run.Fact {
		if refused = required.Check("run", Tag(newest)); refused != nil {
			return nil
		}
		return run.Relabelled{Change: labels, By: who.Actor()}
	})
	if refused != nil {
		err = refused
	}
	return r, err
}

// LabelAll changes the labels of the runs that a filter selects, newest first. It returns the
// results of a page; next is empty on the last one. A run that leaves the filter before its change
// is committed is not changed.
func (s *Runs) LabelAll(ctx context.Context, in Bulk) (results []BulkResult, next string, err error) {
	return s.bulk(ctx, in, func(r run.Run) (*BulkResult, error) {
		selected := true
		after, err := s.applyTo(ctx, r, func(newest run.Run) run.Fact {
			if selected = in.Filter.matches(&newest); !selected {
				return nil
			}
			return run.Relabelled{Change: in.Labels, By: in.Identity.Actor()}
		})
		if errors.Is(err, port.ErrNotFound) || !selected {
			return nil, nil
		}
		return &BulkResult{Run: after, Existing: after.Version == r.Version}, err
	})
}
