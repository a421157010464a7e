package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Bulk is a request to cancel, to retry or to label the runs that a filter selects.
type Bulk struct {
	Identity port.Identity
	Filter   Filter
	// DryRun changes nothing.
	DryRun bool
	// Cursor is the next cursor that the previous page returned; empty is the first page. Limit
	// is the number of runs of a page.
	Cursor string
	Limit  int
	// Labels are changed by LabelAll.
	Labels label.Change
	// Reason is for a cancel. The other fields are for a retry.
	Reason                                     string
	IdempotencyKey, CorrelationID, TraceParent string
}

// BulkResult is the result of a bulk request for one run.
type BulkResult struct {
	// Run is the selected run; for a cancel, as stored after it.
	Run run.Run
	// Retry is the new run of a retry; nil for other requests and a dry run. Existing: an
	// earlier request created it, or the run has the labels already.
	Retry    *run.Run
	Existing bool
	// Err is the reason that the run was not changed; nil without a failure.
	Err error
}

const (
	// bulkStep is the number of runs that are changed between two checks of bulkTime.
	bulkStep = 20
	// bulkTime ends a page early, well before the time limit of a function.
	bulkTime = 10 * time.Second
)

// CancelAll requests the cancellation of the runs that a filter selects and that have not
// ended, newest first. It returns the results of a page; next is empty on the last one. A
// run that leaves the filter before the request is committed is not cancelled. With Filter.IDs
// and no states, the result has the runs that have ended, too.
func (s *Runs) CancelAll(ctx context.Context, in Bulk) (results []BulkResult, next string, err error) {
	if len(in.Filter.States) == 0 && len(in.Filter.IDs) == 0 {
		in.Filter.States = statesThat(func(state run.State) bool { return !state.Terminal() })
	}
	asked := cancelRequest(in.Identity, in.Reason)
	return s.bulk(ctx, in, func(r run.Run) (*BulkResult, error) {
		after, err := s.applyTo(ctx, r, func(newest run.Run) run.Fact {
			if !in.Filter.matches(&newest) {
				return nil
			}
			return asked
		})
		if errors.Is(err, port.ErrNotFound) || err == nil && after.Cancel == nil && len(in.Filter.IDs) == 0 {
			return nil, nil
		}
		return &BulkResult{Run: after}, err
	})
}

// RetryAll retries the runs that a filter selects and that have ended, newest first; by default
// those that failed, or the skipped ones if Filter.Skipped is true. It returns the results of a
// page; next is empty on the last one. With Filter.IDs and no states, a run that has not ended has
// the result NotEnded.
//
// Requests with the same IdempotencyKey retry each run once, and do not retry the runs that
// they created. Without a key, all requests together retry each run once.
func (s *Runs) RetryAll(ctx context.Context, in Bulk) (results []BulkResult, next string, err error) {
	if err := change.CheckKey(in.IdempotencyKey); err != nil {
		return nil, "", err
	}
	if len(in.Filter.States) == 0 && len(in.Filter.IDs) == 0 {
		in.Filter.States = []run.State{run.Failed, run.Orphaned}
		if skipped := in.Filter.Skipped; skipped != nil && *skipped {
			in.Filter.States = []run.State{run.Completed}
		}
	}
	return s.bulk(ctx, in, func(r run.Run) (*BulkResult, error) {
		if !r.State.Terminal() {
			return &BulkResult{Run: r}, notEnded(r)
		}
		again, existing, err := s.retry(ctx, r, RetryRequest{
			Identity: in.Identity, IdempotencyKey: bulkKey(in.IdempotencyKey, r.TaskID), CorrelationID: in.CorrelationID,
			TraceParent: in.TraceParent,
		})
		if err != nil {
			return &BulkResult{Run: r}, err
		}
		return &BulkResult{Run: r, Retry: &again, Existing: existing}, nil
	})
}

// bulkKey is the key of the retry of one run. Clients cannot send it, because it has a
// character that is not printable.
func bulkKey(key, taskID string) string { return fmt.Sprintf("\x1fretry %q of %s", key, taskID) }

// bulk changes the runs of a page one by one. change returns nil for a run that is no
// longer selected.
func (s *Runs) bulk(ctx context.Context, in Bulk, change func(run.Run) (*BulkResult, error)) (results []BulkResult, next string, err error) {
	until := s.now().Add(bulkTime)
	for next = in.Cursor; ; {
		found, err := s.step(ctx, in, port.Page{Cursor: next, Limit: min(bulkStep, in.Limit-len(results))})
		if err != nil && len(results) > 0 { // the next request starts here
			s.log.WarnContext(ctx, "a bulk request ended early", "error", err.Error())
			return results, next, nil
		}
		if err != nil {
			return nil, "", err
		}
		for _, selected := range found.runs {
			r := *selected
			result, err := s.bulkOne(ctx, in, r, change)
			if err != nil {
				s.warn(ctx, r, "a bulk request did not change the run", err)
				result = &BulkResult{Run: r, Err: err}
			}
			if result != nil {
				results = append(results, *result)
			}
		}
		if next = found.next; next == "" || len(results) >= in.Limit || !s.now().Before(until) {
			return results, next, nil
		}
	}
}

// step reads a page of the runs of a request. The runs with ids are one page.
func (s *Runs) step(ctx context.Context, in Bulk, page port.Page) (found selection, err error) {
	if len(in.Filter.IDs) == 0 {
		return s.selected(ctx, in.Identity.Tenant, page, in.Filter)
	}
	for _, id := range in.Filter.IDs {
		r, err := s.find(ctx, in.Identity, id)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return found, err
		}
		if err == nil && in.Filter.matches(&r) {
			found.runs = append(found.runs, &r)
		}
	}
	return found, nil
}

// bulkOne calls change for a run. It changes nothing in a dry run, or if requests with the same
// IdempotencyKey created the run.
func (s *Runs) bulkOne(ctx context.Context, in Bulk, r run.Run, change func(run.Run) (*BulkResult, error)) (*BulkResult, error) {
	own, err := s.createdBy(ctx, in, r)
	switch {
	case own || err != nil:
		return nil, err
	case in.DryRun:
		return &BulkResult{Run: r}, nil
	}
	return change(r)
}

// createdBy reports whether the run is a retry that requests with the same
// IdempotencyKey created.
func (s *Runs) createdBy(ctx context.Context, in Bulk, r run.Run) (bool, error) {
	if in.IdempotencyKey == "" || r.RetryOf == "" {
		return false, nil
	}
	made, err := s.store.FindByKey(ctx, r.Tenant, port.IdempotencyKey{Key: bulkKey(in.IdempotencyKey, r.RetryOf), Digest: job.RetryDigest(r.RetryOf)})
	if errors.Is(err, port.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the run of the Idempotency-Key: %w", err)
	}
	return made.TaskID == r.TaskID, nil
}

func statesThat(hold func(run.State) bool) (states []run.State) {
	for _, state := range run.States() {
		if hold(state) {
			states = append(states, state)
		}
	}
	return states
}
