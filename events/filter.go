package events

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/domain/label"
)

// NoParent is the ParentRunID of a Filter that leaves out the events of children.
const NoParent = "none"

// MaxTypes is the largest number of patterns in a filter.
const MaxTypes = 50

// Filter selects events of a tenant. The zero Filter selects all events. An event must match
// each non-empty field.
type Filter struct {
	// Types are event types, in which "*" matches any characters. One must match.
	Types []string `json:"types,omitempty"`
	// ProjectID is the ProjectID of the envelope.
	ProjectID string `json:"projectId,omitempty"`
	// JobID is the id of a stored job. It matches events of the job's runs, firings and
	// changes.
	JobID string `json:"jobId,omitempty"`
	// TaskID is the task id or the run id of a run. BatchID is the batch of the run.
	TaskID  string `json:"taskId,omitempty"`
	BatchID string `json:"batchId,omitempty"`
	// ParentRunID selects events of the children of a run, or with NoParent those of no child.
	ParentRunID string `json:"parentRunId,omitempty"`
	// Label selects events of runs whose labels after the event meet its requirements.
	Label label.Query `json:"label,omitzero"`
}

// All reports whether the filter selects all events.
func (f Filter) All() bool {
	return len(f.Types) == 0 && f.ProjectID == "" && f.JobID == "" && f.TaskID == "" && f.BatchID == "" && f.ParentRunID == "" && f.Label.IsZero()
}

// Check returns an error if a pattern in Types matches no event type.
func (f Filter) Check() error {
	if len(f.Types) > MaxTypes {
		return fmt.Errorf("got %d event types, want at most %d", len(f.Types), MaxTypes)
	}
	for _, pattern := range f.Types {
		if !slices.ContainsFunc(eventtype.All(), func(info eventtype.Info) bool { return matches(pattern, string(info.Type)) }) {
			return fmt.Errorf("unknown event type %.100q, want one such as %s or job.*", pattern, eventtype.Completed)
		}
	}
	return nil
}

// Matches reports whether the filter selects an event.
func (f Filter) Matches(e Envelope) bool {
	return f.matchesType(e.EventType) && equal(f.ProjectID, e.ProjectID) && f.matchesJob(e) && f.matchesRun(e) && f.matchesParent(e)
}

func (f Filter) matchesType(t eventtype.Type) bool {
	return len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(pattern string) bool { return matches(pattern, string(t)) })
}

func (f Filter) matchesJob(e Envelope) bool {
	switch {
	case f.JobID == "":
		return true
	case e.Job != nil:
		return e.Job.DefinitionID == f.JobID
	case e.Schedule != nil:
		return e.Schedule.DefinitionID == f.JobID
	}
	return e.Policy != nil && e.Policy.Resource == "job" && e.Policy.ID == f.JobID
}

func (f Filter) matchesRun(e Envelope) bool {
	if f.TaskID == "" && f.BatchID == "" && f.Label.IsZero() {
		return true
	}
	return e.Job != nil && (equal(f.TaskID, e.Job.ID) || f.TaskID == e.Job.RunID) && equal(f.BatchID, e.Job.BatchID) && f.Label.Matches(e.Job.Labels)
}

func (f Filter) matchesParent(e Envelope) bool {
	switch f.ParentRunID {
	case "":
		return true
	case NoParent:
		return e.Job == nil || e.Job.ParentRunID == ""
	}
	return e.Job != nil && e.Job.ParentRunID == f.ParentRunID
}

// equal reports whether value is the wanted one. An empty want accepts every value.
func equal(want, value string) bool { return want == "" || want == value }

// matches reports whether a text matches a pattern in which "*" is a wildcard for any
// characters.
func matches(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !ok || !wild {
		return ok && text == ""
	}
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], after
	}
}
