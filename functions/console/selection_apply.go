package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/sortie-dev/sortie/functions/console/jobs"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	limits "github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	labels "github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// applySelection carries out the action, or continues it. Requests at the same time change each
// run once: a cancel and labels are idempotent, and a rerun has a key.
func applySelection(v *page.Visit) (string, error) {
	record, s, err := readSelection(v)
	if err != nil {
		return "", err
	}
	until := v.Now().Add(applyTime)
	if s.Applied.IsZero() {
		if s.Labels, err = labelsOf(s, v.Request.PostForm); err != nil {
			return "", err
		}
		s.Applied, s.AppliedBy, s.Reason = v.Now(), v.Session.Token.Name, ui.Short(200, v.Request.PostForm.Get("reason"))
		err = saveSelection(v, &record, s)
	}
	for err == nil && v.Now().Before(until) {
		ids := s.open()
		if len(ids) == 0 {
			break
		}
		if err = applyTo(v, record.ID, &s, ids[:min(len(ids), limits.BulkPage)]); err == nil {
			err = saveSelection(v, &record, s)
		}
	}
	if err != nil && !errors.Is(err, port.ErrConflict) { // after a conflict, another request continues
		return "", err
	}
	return selectionPath(record.ID), nil
}

// applyTo carries out the action for runs of a selection.
func applyTo(v *page.Visit, id string, s *selection, ids []string) error {
	var answer contract.BulkAnswer
	filter := contract.RunFilter{RunIDs: ids}
	method, path, header := http.MethodPost, "/v1/runs:cancel", http.Header{}
	var request any = contract.BulkCancelRequest{Filter: filter, Reason: s.Reason}
	switch s.Action {
	case actionRerun:
		path, request = "/v1/runs:retry", contract.BulkRequest{Filter: filter}
		header.Set("Idempotency-Key", "console-"+id)
	case actionLabel:
		method, path, request = http.MethodPatch, "/v1/runs", contract.BulkLabelRequest{Filter: filter, LabelRequest: contract.LabelRequest{Labels: s.Labels}}
	}
	response, err := v.Call(method, path, nil, request, header)
	if err != nil {
		return err
	}
	if err := page.Read(response, &answer); err != nil {
		return err
	}
	results := map[string]contract.BulkRun{}
	for _, r := range answer.Runs {
		results[r.RunID] = r
	}
	for i := range s.Runs {
		one := &s.Runs[i]
		if !slices.Contains(ids, one.ID) {
			continue
		}
		r, ok := results[one.ID]
		if !ok {
			r = contract.BulkRun{State: one.State, Result: contract.BulkRefused, Message: "is unknown, or has expired"}
		}
		one.State, one.Result, one.Message = r.State, r.Result, ""
		if r.Result == contract.BulkRefused || r.Result == contract.CancelTooLate {
			one.Message = ui.Short(80, r.Message)
		}
		if r.Retry != nil {
			one.New = r.Retry.RunID
		}
	}
	return nil
}

// labelsOf returns the labels of the form that applies a selection; nil for another action.
func labelsOf(s selection, form url.Values) (labels.Change, error) {
	if s.Action != actionLabel {
		return nil, nil
	}
	change, err := jobs.FormLabels(form)
	if err == nil && len(change) == 0 {
		err = fault.Invalid("labels", "no labels, want KEY=VALUE, or KEY- to remove one")
	}
	return change, err
}
