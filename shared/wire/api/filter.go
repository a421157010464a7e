package api

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// parameterTypes is the query parameter for event types, separated by commas. parameterLabel is that
// of a selector of labels.
const (
	parameterTypes = "types"
	parameterLabel = "label"
)

// filterIDs maps the other query parameters of an event filter to its fields.
func filterIDs(f *events.Filter) map[string]*string {
	return map[string]*string{"projectId": &f.ProjectID, "jobId": &f.JobID, "taskId": &f.TaskID, "batchId": &f.BatchID, "parentRunId": &f.ParentRunID}
}

// FilterParameters lists the query parameters of an event filter.
func FilterParameters() []string {
	return []string{parameterTypes, "projectId", "jobId", "taskId", "batchId", "parentRunId", parameterLabel}
}

// QueryFilter parses the event filter in a query. The fault is InvalidRequest with the
// parameter.
func QueryFilter(query url.Values) (f events.Filter, err error) {
	if query.Has(parameterTypes) {
		f.Types = strings.Split(query.Get(parameterTypes), ",")
	}
	if f.Label = label.QueryOf(query.Get(parameterLabel)); query.Has(parameterLabel) && f.Label.IsZero() {
		return f, fault.Invalid(parameterLabel, "empty label, want a selector such as team=data, or no parameter")
	}
	for name, field := range filterIDs(&f) {
		if *field = query.Get(name); query.Has(name) && *field == "" {
			return f, fault.Invalid(name, "empty %s, want an id or no parameter", name)
		}
	}
	return f, checkFilter(f)
}

// BodyFilter converts the event filter in a request body. The fault is InvalidRequest with the
// field.
func BodyFilter(body contract.EventFilter) (events.Filter, error) {
	f := events.Filter{Types: body.Types, ProjectID: body.ProjectID, JobID: body.JobID, TaskID: body.TaskID, BatchID: body.BatchID, ParentRunID: body.ParentRunID, Label: label.QueryOf(body.Label)}
	return f, checkFilter(f)
}

func checkFilter(f events.Filter) error {
	if err := f.Check(); err != nil {
		return fault.Invalid(parameterTypes, "%s", err)
	}
	if err := f.Label.Check(); err != nil {
		return fault.Invalid(parameterLabel, "malformed selector: %s", err)
	}
	for name, field := range filterIDs(&f) {
		if !utf8.ValidString(*field) || utf8.RuneCountInString(*field) > limit.EventFilter {
			return fault.Invalid(name, "malformed %s, want at most %d characters of UTF-8", name, limit.EventFilter)
		}
	}
	return nil
}

// FilterQuery returns the query that QueryFilter parses to f.
func FilterQuery(f events.Filter) url.Values {
	query := url.Values{}
	if len(f.Types) > 0 {
		query.Set(parameterTypes, strings.Join(f.Types, ","))
	}
	if !f.Label.IsZero() {
		query.Set(parameterLabel, f.Label.String())
	}
	for name, field := range filterIDs(&f) {
		if *field != "" {
			query.Set(name, *field)
		}
	}
	return query
}
