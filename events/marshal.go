package events

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
)

// MarshalJSON implements json.Marshaler.
func (e Envelope) MarshalJSON() ([]byte, error) {
	if e.plain() {
		return json.Marshal(plainOf(&e))
	}
	type fields Envelope
	return encode(fields(e), e.Unknown)
}

// The parts of a plainEnvelope have no marshaler, because package json reads the output of a
// marshaler once more.
type (
	plainActor    Actor
	plainJob      Job
	plainNotifier Notifier
)

// plainEnvelope is an Envelope without unknown fields in those parts that each event of a run
// has. Its JSON is the same.
type plainEnvelope struct {
	SchemaVersion  string         `json:"schemaVersion"`
	EventID        string         `json:"eventId"`
	EventType      eventtype.Type `json:"eventType"`
	OccurredAt     time.Time      `json:"occurredAt"`
	IdempotencyKey string         `json:"idempotencyKey"`
	CorrelationID  string         `json:"correlationId,omitempty"`
	TenantID       string         `json:"tenantId"`
	ProjectID      string         `json:"projectId,omitempty"`
	Actor          plainActor     `json:"actor"`
	Job            *plainJob      `json:"job,omitempty"`
	Schedule       *Schedule      `json:"schedule,omitempty"`
	Policy         *Policy        `json:"policy,omitempty"`
	Log            *Log           `json:"log,omitempty"`
	Metrics        map[string]any `json:"metrics,omitempty"`
	Notifier       *plainNotifier `json:"notifier,omitempty"`
	Truncated      []string       `json:"truncated,omitempty"`
}

func (e *Envelope) plain() bool {
	return e.Unknown == nil && e.Actor.Unknown == nil && (e.Job == nil || e.Job.Unknown == nil) && (e.Notifier == nil || e.Notifier.Unknown == nil)
}

func plainOf(e *Envelope) *plainEnvelope {
	return &plainEnvelope{
		e.SchemaVersion, e.EventID, e.EventType, e.OccurredAt, e.IdempotencyKey, e.CorrelationID, e.TenantID, e.ProjectID,
		plainActor(e.Actor), (*plainJob)(e.Job), e.Schedule, e.Policy, e.Log, e.Metrics, (*plainNotifier)(e.Notifier), e.Truncated,
	}
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Envelope) UnmarshalJSON(document []byte) (err error) {
	if e.decodePlain(document) {
		return nil
	}
	type fields Envelope
	e.Unknown, err = decode(document, (*fields)(e))
	return err
}

// MarshalJSON implements json.Marshaler.
func (a Actor) MarshalJSON() ([]byte, error) {
	type fields Actor
	return encode(fields(a), a.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Actor) UnmarshalJSON(document []byte) (err error) {
	type fields Actor
	a.Unknown, err = decode(document, (*fields)(a))
	return err
}

// MarshalJSON implements json.Marshaler.
func (j Job) MarshalJSON() ([]byte, error) {
	type fields Job
	return encode(fields(j), j.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (j *Job) UnmarshalJSON(document []byte) (err error) {
	type fields Job
	j.Unknown, err = decode(document, (*fields)(j))
	return err
}

// MarshalJSON implements json.Marshaler.
func (r JobRun) MarshalJSON() ([]byte, error) {
	type fields JobRun
	return encode(fields(r), r.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *JobRun) UnmarshalJSON(document []byte) (err error) {
	type fields JobRun
	r.Unknown, err = decode(document, (*fields)(r))
	return err
}

// MarshalJSON implements json.Marshaler.
func (a Artifact) MarshalJSON() ([]byte, error) {
	type fields Artifact
	return encode(fields(a), a.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Artifact) UnmarshalJSON(document []byte) (err error) {
	type fields Artifact
	a.Unknown, err = decode(document, (*fields)(a))
	return err
}

// MarshalJSON implements json.Marshaler.
func (f Fault) MarshalJSON() ([]byte, error) {
	type fields Fault
	return encode(fields(f), f.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Fault) UnmarshalJSON(document []byte) (err error) {
	type fields Fault
	f.Unknown, err = decode(document, (*fields)(f))
	return err
}

// MarshalJSON implements json.Marshaler.
func (s Schedule) MarshalJSON() ([]byte, error) {
	type fields Schedule
	return encode(fields(s), s.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Schedule) UnmarshalJSON(document []byte) (err error) {
	type fields Schedule
	s.Unknown, err = decode(document, (*fields)(s))
	return err
}

// MarshalJSON implements json.Marshaler.
func (p Policy) MarshalJSON() ([]byte, error) {
	type fields Policy
	return encode(fields(p), p.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Policy) UnmarshalJSON(document []byte) (err error) {
	type fields Policy
	p.Unknown, err = decode(document, (*fields)(p))
	return err
}

// MarshalJSON implements json.Marshaler.
func (l Log) MarshalJSON() ([]byte, error) {
	type fields Log
	return encode(fields(l), l.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Log) UnmarshalJSON(document []byte) (err error) {
	type fields Log
	l.Unknown, err = decode(document, (*fields)(l))
	return err
}

// MarshalJSON implements json.Marshaler.
func (n Notifier) MarshalJSON() ([]byte, error) {
	type fields Notifier
	return encode(fields(n), n.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Notifier) UnmarshalJSON(document []byte) (err error) {
	type fields Notifier
	n.Unknown, err = decode(document, (*fields)(n))
	return err
}

// MarshalJSON implements json.Marshaler.
func (r Replay) MarshalJSON() ([]byte, error) {
	type fields Replay
	return encode(fields(r), r.Unknown)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Replay) UnmarshalJSON(document []byte) (err error) {
	type fields Replay
	r.Unknown, err = decode(document, (*fields)(r))
	return err
}
