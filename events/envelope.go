package events

import (
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
)

// SchemaVersion is the version of the envelope.
const SchemaVersion = "orch.event.v1"

// idPrefix is the prefix of an event's id. A ULID follows it.
const idPrefix = "urn:orch:event:"

// Envelope is a published event. Unknown has the fields that this version does not know, in the
// envelope and in its parts. They are written again.
type Envelope struct {
	SchemaVersion string `json:"schemaVersion"`
	// EventID is the same for each delivery of the event; see ID.
	EventID    string         `json:"eventId"`
	EventType  eventtype.Type `json:"eventType"`
	OccurredAt time.Time      `json:"occurredAt"`
	// IdempotencyKey is the same for each delivery; see RunKey and ResourceKey.
	IdempotencyKey string `json:"idempotencyKey"`
	CorrelationID  string `json:"correlationId,omitempty"`
	TenantID       string `json:"tenantId"`
	// ProjectID is the workspace; empty for an event about the whole tenant.
	ProjectID string `json:"projectId,omitempty"`
	Actor     Actor  `json:"actor"`
	// Job is the run that the event is about; nil for an event without a run.
	Job      *Job      `json:"job,omitempty"`
	Schedule *Schedule `json:"schedule,omitempty"`
	Policy   *Policy   `json:"policy,omitempty"`
	Log      *Log      `json:"log,omitempty"`
	// Metrics are numbers by name, in the unit of the name's suffix.
	Metrics  map[string]any `json:"metrics,omitempty"`
	Notifier *Notifier      `json:"notifier,omitempty"`
	// Truncated names the fields that were shortened because the envelope was too long.
	Truncated []string `json:"truncated,omitempty"`
	Unknown   Unknown  `json:"-"`
}

// Actor is the cause of an event: a client, a worker or a part of Sortie.
type Actor struct {
	// Subject is "token/<fingerprint>", "worker/<id>", "schedule/<job>", "job/<job>",
	// "pool/<pool>", "service/<name>" or "localhost".
	Subject string `json:"subject"`
	// Scopes are the scopes of a client's token.
	Scopes  []string `json:"scopes,omitempty"`
	Unknown Unknown  `json:"-"`
}

// ActorOf returns the actor for an identity, KIND:NAME or NAME. The subject of the actor is
// KIND/NAME.
func ActorOf(identity string, scopes []string) Actor {
	return Actor{Subject: strings.Replace(identity, ":", "/", 1), Scopes: scopes}
}

// Job is the run of an event. The specification of the envelope sets its JSON name.
// DefinitionID names a stored definition.
type Job struct {
	// ID is the task id of the run.
	ID     string  `json:"id"`
	Type   JobType `json:"type"`
	RunID  string  `json:"runId"`
	Status Status  `json:"status"`
	// DefinitionID is the id of the stored job; empty for another run.
	DefinitionID string `json:"definitionId,omitempty"`
	// DefinitionVersion is the version of the stored job; 0 for another run.
	DefinitionVersion int64 `json:"definitionVersion,omitempty"`
	// BatchID is the batch that the client assigned to the run.
	BatchID string `json:"batchId,omitempty"`
	// ParentRunID is the run whose child the run is; empty for no child.
	ParentRunID string `json:"parentRunId,omitempty"`
	// Labels are the labels of the run after the event.
	Labels map[string]string `json:"labels,omitempty"`
	// Attempt is 0 before the first attempt.
	Attempt int `json:"attempt"`
	// LeaseID is the slot of the attempt. TaskRunnerID is its machine or worker.
	LeaseID      string `json:"leaseId,omitempty"`
	TaskRunnerID string `json:"taskRunnerId,omitempty"`
	// State is the exact state of the run. From is its state before the event.
	State  string `json:"state,omitempty"`
	From   string `json:"from,omitempty"`
	Reason Reason `json:"reason,omitempty"`
	// TriggeredBy is the run whose action created this one, or nil. Triggered is the run that
	// the action of the event has created.
	TriggeredBy *JobRun `json:"triggeredBy,omitempty"`
	Triggered   *JobRun `json:"triggered,omitempty"`
	// Skipped means that the run has ended without an attempt. Its Status is StatusCompleted
	// although it has not succeeded.
	Skipped bool `json:"skipped,omitempty"`
	// Seq numbers the events of a run from 1.
	Seq int `json:"seq,omitempty"`
	// PayloadDigest is the SHA-256 of the work in canonical JSON: of the accepted request, or
	// of the definition of a stored job with its version and the parameters.
	PayloadDigest string     `json:"payloadDigest,omitempty"`
	Artifacts     []Artifact `json:"artifacts,omitempty"`
	// Message is a sentence with details.
	Message string  `json:"message,omitempty"`
	Fault   *Fault  `json:"fault,omitempty"`
	Unknown Unknown `json:"-"`
}

// JobRun names a run of a stored job.
type JobRun struct {
	// JobID is the id of the stored job; empty for a run of no stored job.
	JobID   string  `json:"jobId,omitempty"`
	RunID   string  `json:"runId"`
	Unknown Unknown `json:"-"`
}

// JobType is the type of work of a run.
type JobType string

// The types of work.
const (
	JobExport         JobType = "export"
	JobPackRun        JobType = "pack-run"
	JobInference      JobType = "inference"
	JobIngest         JobType = "ingest"
	JobPolicySimulate JobType = "policy-simulate"
)

// Status summarizes the state of a run.
type Status string

// The statuses.
const (
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCanceled  Status = "canceled"
)

// Reason is why a run does not run; empty if it does.
type Reason string

// The reasons.
const (
	ReasonUserCancelled Reason = "user_cancelled"
	ReasonRetryBackoff  Reason = "retry_backoff"
	ReasonQuotaPaused   Reason = "quota_paused"
)

// Artifact is a file that a run produced.
type Artifact struct {
	// URI is the absolute URL of the download, which needs a token.
	URI string `json:"uri"`
	// Digest is "sha256:" and hexadecimal digits; empty if it is unknown.
	Digest string `json:"digest,omitempty"`
	MIME   string `json:"mime"`
	// Size is in bytes; 0 if it is unknown.
	Size     int64   `json:"size,omitempty"`
	FileName string  `json:"fileName,omitempty"`
	Unknown  Unknown `json:"-"`
}

// Fault is why an attempt or a run failed.
type Fault struct {
	Code      string  `json:"code"`
	Category  string  `json:"category,omitempty"`
	Message   string  `json:"message,omitempty"`
	Retryable bool    `json:"retryable"`
	Unknown   Unknown `json:"-"`
}

// Schedule is a firing of a stored job.
type Schedule struct {
	DefinitionID string    `json:"definitionId"`
	ScheduledAt  time.Time `json:"scheduledAt"`
	// FiredAt is the time at which the firing was committed.
	FiredAt time.Time `json:"firedAt"`
	RunID   string    `json:"runId,omitempty"`
	// Skipped is the number of firings that were skipped; Reason says why.
	Skipped int     `json:"skipped,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Unknown Unknown `json:"-"`
}

// Policy is a resource that was created, changed or deleted.
type Policy struct {
	// Resource is "job", "pool", "model", "quota" or "webhook". ID is its id.
	Resource string `json:"resource"`
	ID       string `json:"id"`
	Version  int64  `json:"version"`
	// Before and After are digests of the resource. Before is empty for a creation, After for a
	// deletion.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Reason is why Sortie itself has changed the resource, or the cause of a warning.
	Reason  string  `json:"reason,omitempty"`
	Unknown Unknown `json:"-"`
}

// Log is a part of the output of a program.
type Log struct {
	// Stream is "stdout" or "stderr".
	Stream string `json:"stream"`
	// Sequence numbers the parts of an attempt's stream from 1.
	Sequence int64 `json:"sequence"`
	// Data is the output, at most 32 KiB.
	Data    []byte  `json:"data"`
	Unknown Unknown `json:"-"`
}

// Notifier describes the delivery of an event. It differs between deliveries, and Canonical
// omits it.
type Notifier struct {
	Channel  string   `json:"channel"`
	Delivery Delivery `json:"delivery"`
	Replay   *Replay  `json:"replay,omitempty"`
	Unknown  Unknown  `json:"-"`
}

// Delivery sets how receivers verify an event.
type Delivery string

// The deliveries.
const (
	DeliveryDSSE  Delivery = "dsse"  // a bus
	DeliveryHMAC  Delivery = "hmac"  // a webhook
	DeliveryPlain Delivery = "plain" // a stream
)

// Replay is the place of an event in a replay.
type Replay struct {
	// Ordinal counts from 1 to Total.
	Ordinal int     `json:"ordinal"`
	Total   int     `json:"total"`
	Unknown Unknown `json:"-"`
}

// ID returns the id of the event with a ULID.
func ID(ulid string) string { return idPrefix + ulid }

// ULID returns the ULID of an event's id.
func ULID(eventID string) (string, error) {
	id, ok := strings.CutPrefix(eventID, idPrefix)
	if !ok {
		return "", fmt.Errorf("malformed event id %q, want %s and a ULID", eventID, idPrefix)
	}
	return id, nil
}

// RunKey returns the idempotency key of an event of a run. It appends ordinal for a type of
// which a run can have several events in an attempt.
func RunKey(t eventtype.Type, taskID string, attempt, ordinal int) string {
	key := fmt.Sprintf("orch-%s-%s-%d", t, taskID, attempt)
	if info, ok := eventtype.Of(t); ok && info.Once {
		return key
	}
	return fmt.Sprintf("%s-%d", key, ordinal)
}

// ResourceKey returns the idempotency key of an event without a run.
func ResourceKey(t eventtype.Type, resource string, version int64) string {
	return fmt.Sprintf("orch-%s-%s-%d", t, resource, version)
}

// Parse reads an envelope. It returns an error for another schema version, and for a document
// that is not an envelope.
func Parse(document []byte) (Envelope, error) {
	var e Envelope
	// json.Unmarshal would read the document twice more before it calls this method.
	if err := e.UnmarshalJSON(document); err != nil {
		return Envelope{}, fmt.Errorf("malformed event: %w", err)
	}
	if e.SchemaVersion != SchemaVersion {
		return Envelope{}, fmt.Errorf("unknown schemaVersion %q, want %s", e.SchemaVersion, SchemaVersion)
	}
	return e, nil
}
