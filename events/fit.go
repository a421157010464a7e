package events

import (
	"fmt"
	"slices"
	"strings"
)

// MaxSize is the largest size of an envelope in bytes. CloudEvents intermediaries must
// forward events of this size.
const MaxSize = 64 << 10

// maxText is the length of a shortened text in bytes. maxArtifacts is the length of a shortened
// list of artifacts.
const (
	maxText      = 1 << 10
	maxArtifacts = 100
)

const cutMark = " … (cut)"

// Fit returns an envelope of at most MaxSize bytes. It shortens texts, and then lists, in a
// fixed order until the envelope fits, and names the shortened fields in Truncated.
func (e Envelope) Fit() (Envelope, error) {
	if e.small() {
		return e, nil
	}
	for _, cut := range e.cuts() {
		size, err := e.size()
		if err != nil || size <= MaxSize {
			return e, err
		}
		if cut.apply() {
			e.Truncated = append(slices.Clip(e.Truncated), cut.field)
		}
	}
	size, err := e.size()
	if err == nil && size > MaxSize {
		err = fmt.Errorf("the event has %d bytes, want at most %d", size, MaxSize)
	}
	return e, err
}

// small reports whether the envelope certainly has at most MaxSize bytes, without encoding it.
// It may return false for an envelope of that size.
func (e Envelope) small() bool {
	const (
		escape = 6       // the most bytes of a byte of a text
		others = 8 << 10 // more than the names, numbers and times of all fields
	)
	texts := len(e.EventID) + len(e.EventType) + len(e.IdempotencyKey) + len(e.CorrelationID) + len(e.TenantID) + len(e.ProjectID) + len(e.Actor.Subject)
	for _, list := range [][]string{e.Actor.Scopes, e.Truncated} {
		for _, text := range list {
			texts += len(text) + 1
		}
	}
	if j := e.Job; j != nil {
		texts += len(j.ID) + len(j.RunID) + len(j.DefinitionID) + len(j.BatchID) + len(j.ParentRunID) + len(j.LeaseID) + len(j.TaskRunnerID) + len(j.PayloadDigest) + len(j.Message) +
			len(j.Type) + len(j.Status) + len(j.State) + len(j.From) + len(j.Reason)
		for key, value := range j.Labels {
			texts += len(key) + len(value) + 1
		}
		if len(j.Artifacts) > 0 || j.Fault != nil || j.TriggeredBy != nil || j.Triggered != nil || j.Unknown != nil {
			return false
		}
	}
	metrics, known := bytesOf(e.Metrics)
	if !known {
		return false
	}
	texts += metrics
	if e.Schedule != nil || e.Policy != nil || e.Log != nil || e.Notifier != nil || e.Unknown != nil || e.Actor.Unknown != nil {
		return false
	}
	return texts*escape+others <= MaxSize
}

// bytesOf returns at least the size of a metric without the escapes of its texts. known is false
// for types that the metrics of runs do not have.
func bytesOf(value any) (size int, known bool) {
	const number = 64 // more than a number, or the punctuation of an entry
	switch v := value.(type) {
	case float64, int, int64:
		return number, true
	case string:
		return number + len(v), true
	case map[string]any:
		for name, each := range v {
			n, known := bytesOf(each)
			if !known {
				return 0, false
			}
			size += number + len(name) + n
		}
		return size, true
	}
	return 0, false
}

func (e Envelope) size() (int, error) {
	document, err := e.MarshalJSON() // as it is published; json.Marshal would read it again
	if err != nil {
		return 0, fmt.Errorf("cannot encode the event: %w", err)
	}
	return len(document), nil
}

// cut shortens a field. apply returns false if the field is short enough.
type cut struct {
	field string
	apply func() bool
}

// cuts returns the cuts of the envelope in order. It replaces the parts of the envelope with
// copies, which the cuts change.
func (e *Envelope) cuts() []cut {
	var (
		job      Job
		failure  Fault
		schedule Schedule
	)
	if e.Job != nil {
		job = *e.Job
		e.Job = &job
	}
	if job.Fault != nil {
		failure = *job.Fault
		job.Fault = &failure
	}
	if e.Schedule != nil {
		schedule = *e.Schedule
		e.Schedule = &schedule
	}
	return []cut{
		{"job.message", func() bool { return cutText(&job.Message) }},
		{"job.fault.message", func() bool { return cutText(&failure.Message) }},
		{"schedule.reason", func() bool { return cutText(&schedule.Reason) }},
		{"job.artifacts", func() bool {
			before := len(job.Artifacts)
			job.Artifacts = job.Artifacts[:min(before, maxArtifacts)]
			return len(job.Artifacts) < before
		}},
		{"metrics", func() bool {
			before := len(e.Metrics)
			e.Metrics = nil
			return before > 0
		}},
	}
}

func cutText(text *string) bool {
	if len(*text) <= maxText {
		return false
	}
	*text = strings.ToValidUTF8((*text)[:maxText-len(cutMark)], "") + cutMark
	return true
}
