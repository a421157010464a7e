package contract

import (
	"encoding/json"
	"fmt"
)

// Problem is the body of every error response: RFC 9457 problem details
// (application/problem+json) with the additional fields of the endpoint's contract.
type Problem struct {
	// Type is a URN for the kind of error. Title is its description for people.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail describes the error and, if possible, how to correct it.
	Detail string `json:"detail"`
	// Instance is the path of the request.
	Instance string `json:"instance,omitempty"`
	// Code identifies the error for programs. It is stable across versions.
	Code string `json:"code"`
	// Retryable reports whether the same request may succeed later.
	Retryable bool `json:"retryable"`
	// Field is the invalid field as the request spells it ("options.maxDepth", "wait",
	// "Idempotency-Key").
	Field string `json:"field,omitempty"`
	// Problems lists all problems in the definition of a job or a pool. Field is then the field
	// of the first problem, and Detail contains all of them.
	Problems      []FieldProblem `json:"problems,omitempty"`
	CorrelationID string         `json:"correlationId"`

	// Error is the error code of the worker contract (WC-3).
	Error string `json:"error,omitempty"`
	// Message equals Detail. It is present with Error.
	Message string `json:"message,omitempty"`
	// State is the final state of the attempt: SUCCEEDED, FAILED or CANCELLED.
	State           string `json:"state,omitempty"`
	ExpectedAttempt int    `json:"expectedAttempt,omitempty"`
	ReceivedAttempt int    `json:"receivedAttempt,omitempty"`
	// ExpectedSequence is present with the error sequence_gap.
	ExpectedSequence int `json:"expectedSequence,omitempty"`
	// PolicyLabel, Retriable and RetryAfterMS are present with status 429 (DP-7.5).
	PolicyLabel  string `json:"policy_label,omitempty"`
	Retriable    *bool  `json:"retriable,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	// Formats lists the export formats if the format was unknown.
	Formats []string `json:"formats,omitempty"`
}

// UnmarshalJSON decodes a problem. For an unknown path the member error is an object for other
// clients. UnmarshalJSON ignores that object.
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

// FieldProblem is a problem in one field of a document.
type FieldProblem struct {
	// Field is empty for a problem of the whole document.
	Field string `json:"field,omitempty"`
	// Line is a line number in the request's body, from 1. It is 0 for other parts of the
	// request.
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
