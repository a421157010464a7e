package tasks

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// cancelAll serves a page of POST /v1/runs:cancel.
func cancelAll(svc *runs.Runs, w http.ResponseWriter, r *http.Request) error {
	var asked contract.BulkCancelRequest
	if err := httpkit.DecodeJSON(w, r, &asked); err != nil {
		return err
	}
	request := contract.BulkRequest{Filter: asked.Filter, DryRun: asked.DryRun, Limit: asked.Limit, Cursor: asked.Cursor}
	in, err := bulkOf(r, request, run.State.Terminal, "has ended, want a state of runs that have not")
	if err != nil {
		return err
	}
	if skipped := in.Filter.Skipped; skipped != nil && *skipped {
		return fault.Invalid("filter.skipped", "a run that was skipped has ended, want false or no value")
	}
	in.Reason = asked.Reason
	return bulk(w, r, in, svc.CancelAll, func(result runs.BulkResult, shown *contract.BulkRun) {
		shown.Result, shown.Message = cancelled(result.Run)
	})
}

// retryAll serves a page of POST /v1/runs:retry.
func retryAll(svc *runs.Runs, w http.ResponseWriter, r *http.Request) error {
	var request contract.BulkRequest
	key, err := httpkit.DecodeKeyed(w, r, &request)
	if err != nil {
		return err
	}
	in, err := bulkOf(r, request, func(s run.State) bool { return !s.Terminal() }, "has not ended, want a state of runs that have")
	if err != nil {
		return err
	}
	in.IdempotencyKey = key
	return bulk(w, r, in, svc.RetryAll, func(result runs.BulkResult, shown *contract.BulkRun) {
		shown.Result, shown.Retry = contract.BulkCreated, new(api.RunAccepted(*result.Retry))
		if result.Existing {
			shown.Result = contract.BulkExisting
		}
	})
}

// labelAll changes the labels of the runs that a filter selects.
func labelAll(svc *runs.Runs, w http.ResponseWriter, r *http.Request) error {
	var asked contract.BulkLabelRequest
	if err := decodeLabels(w, r, &asked, &asked.Labels); err != nil {
		return err
	}
	request := contract.BulkRequest{Filter: asked.Filter, DryRun: asked.DryRun, Limit: asked.Limit, Cursor: asked.Cursor}
	in, err := bulkOf(r, request, func(run.State) bool { return false }, "")
	if err != nil {
		return err
	}
	in.Labels = asked.Labels
	return bulk(w, r, in, svc.LabelAll, func(result runs.BulkResult, shown *contract.BulkRun) {
		shown.Result = contract.BulkChanged
		if result.Existing {
			shown.Result = contract.BulkUnchanged
		}
	})
}

// bulkOf reads a request. It returns a fault if wrong reports true for a state of the filter.
func bulkOf(r *http.Request, request contract.BulkRequest, wrong func(run.State) bool, problem string) (runs.Bulk, error) {
	in := runs.Bulk{
		Identity: httpkit.CallerOf(r.Context()), CorrelationID: httpkit.CorrelationID(r.Context()),
		TraceParent: httpkit.TraceParent(r), DryRun: request.DryRun, Cursor: request.Cursor, Limit: limit.BulkPage,
	}
	var err error
	if in.Filter, err = filterOf(request.Filter); err != nil {
		return in, err
	}
	if i := slices.IndexFunc(in.Filter.States, wrong); i >= 0 {
		return in, fault.Invalid("filter.states."+strconv.Itoa(i), "a run in %s %s", in.Filter.States[i], problem)
	}
	if len(in.Filter.IDs) > 0 && in.Cursor != "" {
		return in, fault.Invalid("cursor", "no meaning with filter.runIds, which is one page; leave it out")
	}
	if request.Limit != nil {
		in.Limit = *request.Limit
	}
	if in.Limit < 1 || in.Limit > limit.BulkPage {
		return in, fault.Invalid("limit", "%d is out of range, want 1 to %d", in.Limit, limit.BulkPage)
	}
	return in, nil
}

// bulk changes the runs of a page and writes the results.
func bulk(
	w http.ResponseWriter, r *http.Request, in runs.Bulk,
	change func(context.Context, runs.Bulk) ([]runs.BulkResult, string, error),
	show func(runs.BulkResult, *contract.BulkRun),
) error {
	results, next, err := change(r.Context(), in)
	if err != nil {
		return fmt.Errorf("cannot select the runs: %w", err)
	}
	answer := contract.BulkAnswer{DryRun: in.DryRun, Runs: make([]contract.BulkRun, 0, len(results)), NextCursor: next}
	for _, result := range results {
		of := result.Run
		shown := contract.BulkRun{RunID: of.ID, TaskID: of.TaskID, JobID: of.JobID, State: string(of.State), Result: contract.BulkSelected}
		switch {
		case result.Err != nil:
			p := httpkit.ProblemOf(result.Err).Body
			shown.Result, shown.Code, shown.Message = contract.BulkRefused, p.Code, p.Detail
		case !in.DryRun:
			show(result, &shown)
		}
		answer.Runs = append(answer.Runs, shown)
	}
	return httpkit.WriteJSON(w, http.StatusOK, answer)
}

// filterOf reads the filter of a bulk request.
func filterOf(asked contract.RunFilter) (runs.Filter, error) {
	if reflect.ValueOf(asked).IsZero() || asked.States != nil && len(asked.States) == 0 || asked.RunIDs != nil && len(asked.RunIDs) == 0 {
		return runs.Filter{}, fault.Invalid("filter", "empty filter, want at least one field, and no empty list; it would select every run")
	}
	selector, err := label.Parse(asked.Label)
	if err != nil {
		return runs.Filter{}, fault.Invalid("filter.label", "%v", err)
	}
	filter := runs.Filter{
		Labels: selector, IDs: asked.RunIDs, JobID: asked.JobID, Pool: asked.Pool, Kind: asked.Kind, Trigger: run.Trigger(asked.Trigger), Fault: fault.Code(asked.FaultCode), Error: asked.Error, Skipped: asked.Skipped,
		CreatedAfter: asked.CreatedAfter, CreatedBefore: asked.CreatedBefore,
	}
	if n := len(filter.IDs); n > limit.BulkPage {
		return filter, fault.Invalid("filter.runIds", "%d ids, want at most %d", n, limit.BulkPage)
	}
	for i, name := range asked.States {
		state, states := run.State(name), run.States()
		if !slices.Contains(states, state) {
			return filter, fault.Invalid("filter.states."+strconv.Itoa(i), "unknown state, want one of %v", states)
		}
		filter.States = append(filter.States, state)
	}
	return filter, checkFilter(filter, "filter.")
}

// checkFilter returns a fault for a malformed value. in is the path of the fields.
func checkFilter(f runs.Filter, in string) error {
	for name, text := range map[string]string{"jobId": f.JobID, "pool": f.Pool} {
		if text != "" && !limit.ValidName(text) {
			return fault.Invalid(in+name, "malformed name %q, want 1 to 63 lower-case letters, digits and hyphens", limit.Cut(text, limit.FileName))
		}
	}
	if kinds := spec.FilterKinds(); f.Kind != "" && !slices.Contains(kinds, f.Kind) {
		return fault.Invalid(in+"kind", "unknown kind, want one of %v", kinds)
	}
	if triggers := run.Triggers(); f.Trigger != "" && !slices.Contains(triggers, f.Trigger) {
		return fault.Invalid(in+"trigger", "unknown trigger, want one of %v", triggers)
	}
	if n := utf8.RuneCountInString(f.Error); n > limit.FilterText {
		return fault.Invalid(in+"error", "%d characters, want at most %d", n, limit.FilterText)
	}
	if f.Fault != "" && !f.Fault.Known() {
		return fault.Invalid(in+"faultCode", "unknown code, want one such as %s", fault.ProgramExit)
	}
	if !f.CreatedBefore.IsZero() && !f.CreatedAfter.Before(f.CreatedBefore) {
		return fault.Invalid(in+"createdBefore", "%s is not after createdAfter", f.CreatedBefore.Format("2006-01-02T15:04:05.999Z07:00"))
	}
	return nil
}
