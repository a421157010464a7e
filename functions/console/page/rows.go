package page

import (
	"net/url"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// RunRow is a run in the list.
type RunRow struct {
	contract.Task
	What, Detail string
	// Seconds is the time since the start of the program, or its duration.
	Seconds float64
	Reason  string
}

// listedRun is a run of a list, without the members that no list shows: decoding them would be half
// of the work for a page.
type listedRun struct {
	contract.Task

	Measured unread `json:"measured"`
	Policy   unread `json:"policy"`
	Options  unread `json:"options"`
	Machine  unread `json:"machine"`
	Worker   unread `json:"worker"`
	Output   unread `json:"output"`
	Metrics  unread `json:"metrics"`
}

// unread is a member of a document that is not decoded.
type unread struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*unread) UnmarshalJSON([]byte) error { return nil }

// ListRuns reads a page of runs.
func (v *Visit) ListRuns(query url.Values) (found contract.TaskList, err error) {
	var list struct {
		Tasks         []listedRun `json:"tasks"`
		NextCursor    string      `json:"nextCursor"`
		SearchedUntil time.Time   `json:"searchedUntil"`
	}
	err = v.Get("/v1/runs", query, &list)
	found.NextCursor, found.SearchedUntil = list.NextCursor, list.SearchedUntil
	for i := range list.Tasks {
		found.Tasks = append(found.Tasks, list.Tasks[i].Task)
	}
	return found, err
}

// RowOf returns a run as the list shows it.
func RowOf(t contract.Task, now time.Time) RunRow {
	row := RunRow{Task: t}
	row.What, row.Detail = WhatOf(t)
	row.Seconds = SecondsOf(t.StartedAt, t.EndedAt, now)
	row.Reason = reasonOf(t)
	return row
}

// SecondsOf returns the time from the start of a program to its end, or until now; 0 without a
// start.
func SecondsOf(started, ended, now time.Time) float64 {
	switch {
	case started.IsZero():
		return 0
	case ended.IsZero():
		return now.Sub(started).Seconds()
	}
	return ended.Sub(started).Seconds()
}

// WhatOf returns what a run does: its job, program or export, and a detail.
func WhatOf(t contract.Task) (what, detail string) {
	switch {
	case t.Kind == spec.KindExport:
		return "export " + t.Format, t.PI
	case t.Inference != nil:
		return t.Inference.Model, t.Inference.Engine
	case t.Child != nil && t.JobID != "":
		return t.JobID, ui.Joined("item ", t.Child.Index, ": ", t.Child.Item)
	case t.JobID != "":
		if t.Program != nil {
			detail = t.Program.Image
		}
		return t.JobID, detail
	case t.Program != nil:
		return t.Program.Image, strings.Join(t.Program.Command, " ")
	}
	return t.Kind, ""
}

// missedBy returns why a run did not take place.
func missedBy(m contract.Missed) string {
	text := strings.ReplaceAll(m.Reason, "_", " ")
	if m.By != nil && m.By.JobID != "" {
		text += ": job " + m.By.JobID
	}
	return text
}

// reasonOf returns a phrase about the state of a run.
func reasonOf(t contract.Task) string {
	switch {
	case t.Fault != nil && t.State != string(run.Completed):
		return t.Fault.Message
	case t.QueuePosition != nil && *t.QueuePosition > 0:
		return "queued at position " + ui.Plain(*t.QueuePosition)
	case t.QueuePosition != nil:
		return "first in the queue"
	case t.Missed != nil:
		return missedBy(*t.Missed)
	case len(t.Violations) > 0:
		return t.Violations[len(t.Violations)-1].Message
	case t.Progress != nil && t.EndedAt.IsZero():
		return t.Progress.Message
	case t.Cancel != nil:
		return t.Cancel.Reason
	}
	return ""
}
