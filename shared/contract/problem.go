package contract

import (
	"encoding/json"
	"fmt"
)

// Problem is the body of every error response: RFC 9457 problem details
// (application/problem+json) with the fields that the contract of the endpoint
// adds.
type Problem struct {
	// Type is a URN of the kind of error, Title its text for people.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail describes the error and, if possible, what to do.
	Detail string `json:"detail"`
	// Instance is the path of the request.
	Instance string `json:"instance,omitempty"`
	// Code identifies the error for programs. It is stable across versions.
	Code string `json:"code"`
	// Retryable reports whether the same request may succeed later.
	Retryable bool `json:"retryable"`
	// Field is the invalid field in the spelling of the request
	// ("options.maxDepth", "wait", "Idempotency-Key").
	Field string `json:"field,omitempty"`
	// Problems lists everything that is wrong with the definition of a job or a pool. Field is
	// that of the first one, and Detail has all.
	Problems      []FieldProblem `json:"problems,omitempty"`
	CorrelationID string         `json:"correlationId"`

	// Error is the error code of the worker contract (WC-3).
	Error string `json:"error,omitempty"`
	// Message equals Detail; present with Error.
	Message string `json:"message,omitempty"`
	// State is the final state of the attempt: SUCCEEDED, FAILED or CANCELLED.
	State           string `json:"state,omitempty"`
	ExpectedAttempt int    `json:"expectedAttempt,omitempty"`
	ReceivedAttempt int    `json:"receivedAttempt,omitempty"`
	// ExpectedSequence is present with sequence_gap.
	ExpectedSequence int `json:"expectedSequence,omitempty"`
	// PolicyLabel, Retriable and RetryAfterMS are present with status 429 (DP-7.5).
	PolicyLabel  string `json:"policy_label,omitempty"`
	Retriable    *bool  `json:"retriable,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	// Formats lists the export formats if the format was unknown.
	Formats []string `json:"formats,omitempty"`
}

// UnmarshalJSON decodes a problem. The error of an unknown path is an object for other clients,
// which is left out.
func (p *Problem) UnmarshalJSON(text []byte) error {
	type plain Problem
	v := struct {
		*plain
		Error json.RawMessage `json:"error"`
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("malformed problem: %w", err)
	}
	if len(v.Error) == 0 || v.Error[0] != '"' {
		return nil
	}
	if err := json.Unmarshal(v.Error, &p.Error); err != nil {
		return fmt.Errorf("malformed problem: %w", err)
	}
	return nil
}

// FieldProblem is what is wrong with one field of a document.
type FieldProblem struct {
	// Field is empty for the whole document.
	Field string `json:"field,omitempty"`
	// Line is a line number of the request's body, from 1; 0 for other parts of the request.
	Line    int    `json:"line"`
	Problem string `json:"problem"`
}

// The error codes of the worker contract.
const (
	ErrorAttemptMismatch     = "attempt_mismatch"
	ErrorTaskExpired         = "task_expired"
	ErrorTaskAlreadyTerminal = "task_already_terminal"
	ErrorTaskMismatch        = "task_mismatch"
	ErrorWorkerMismatch      = "worker_mismatch"
	ErrorSequenceGap         = "sequence_gap"
	ErrorSequenceConflict    = "sequence_conflict"
)
