package activity

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Entry is an event that creates or ends a run.
type Entry struct {
	// At is the time of the event, CreatedAt that of the creation of the run.
	At, CreatedAt time.Time
	// Created and Ended report which one it is. A run that is skipped at once is both.
	Created, Ended bool
	// Child: the run is a child of another one.
	Child   bool
	RunID   string
	Work    Work
	State   run.State
	Skipped bool
	// Attempt is the number of attempts.
	Attempt int
	// Code and Message describe the failure.
	Code, Message string
	// Seconds is the duration of the last attempt; 0 without one.
	Seconds float64
}

// Work is what a run does: a stored job, or its kind for a run without one.
type Work struct {
	JobID string `json:"jobId,omitempty"`
	Kind  string `json:"kind"`
}

// published has the fields of an event that are counted. Decoding an events.Envelope takes
// several times as long.
type published struct {
	EventType  eventtype.Type `json:"eventType"`
	OccurredAt time.Time      `json:"occurredAt"`
	Job        *struct {
		RunID        string    `json:"runId"`
		ParentRunID  string    `json:"parentRunId"`
		Type         string    `json:"type"`
		DefinitionID string    `json:"definitionId"`
		State        run.State `json:"state"`
		From         run.State `json:"from"`
		Skipped      bool      `json:"skipped"`
		Attempt      int       `json:"attempt"`
		Seq          int       `json:"seq"`
		Message      string    `json:"message"`
		Fault        *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"fault"`
	} `json:"job"`
	Metrics struct {
		Total    float64 `json:"totalSeconds"`
		Duration float64 `json:"durationSeconds"`
	} `json:"metrics"`
}

// messageLimit is the largest number of characters of Entry.Message.
const messageLimit = 200

// Parse returns the entry of a published event. ok is false for an event that neither creates
// nor ends a run.
func Parse(payload []byte) (e Entry, ok bool, err error) {
	var p published
	if err := json.Unmarshal(payload, &p); err != nil {
		return Entry{}, false, fmt.Errorf("malformed event: %w", err)
	}
	j := p.Job
	if j == nil || j.Seq == 0 { // about another resource, or derived from an event of the run
		return Entry{}, false, nil
	}
	e = Entry{
		At: p.OccurredAt, CreatedAt: p.OccurredAt, Created: j.Seq == 1, Ended: j.State.Terminal() && !j.From.Terminal(),
		Child: j.ParentRunID != "", RunID: j.RunID, Work: Work{JobID: j.DefinitionID, Kind: kindOf(j.Type)}, State: j.State, Skipped: j.Skipped, Attempt: j.Attempt,
		Message: j.Message, Seconds: p.Metrics.Duration,
	}
	if !e.Created {
		e.CreatedAt = p.OccurredAt.Add(-time.Duration(p.Metrics.Total * float64(time.Second)))
	}
	if e.Failed() {
		e.Code = string(j.State)
		if j.Fault != nil {
			e.Code, e.Message = j.Fault.Code, j.Fault.Message
		}
	}
	if text := []rune(e.Message); len(text) > messageLimit {
		e.Message = string(text[:messageLimit])
	}
	return e, e.Created || e.Ended, nil
}

// kindOf returns the kind of a run from the type of its work in events.
func kindOf(jobType string) string {
	if jobType == "pack-run" {
		return spec.KindJob
	}
	return jobType
}

// Spends reports whether the event is the end of an inference task, which spends of budgets.
func (e Entry) Spends() bool { return e.Ended && e.Work.Kind == spec.KindInference }

// Failed reports whether the event is the failure of a run.
func (e Entry) Failed() bool { return e.Ended && (e.State == run.Failed || e.State == run.Orphaned) }
