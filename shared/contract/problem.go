package contract

// Problem is the body of every answer that is not a success: an RFC 9457
// problem (application/problem+json) that also carries what a contract fixes
// for its endpoint.
type Problem struct {
	// Type is a URN that names the kind, Title the same for people.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what happened and, where it helps, what to do.
	Detail string `json:"detail"`
	// Instance is the path of the request.
	Instance string `json:"instance,omitempty"`
	// Code is the failure's name for programs, stable over versions.
	Code string `json:"code"`
	// Retryable says whether the same request may succeed later.
	Retryable bool `json:"retryable"`
	// Field names what is wrong in the request, in its own spelling
	// ("options.maxDepth", "wait", "Idempotency-Key").
	Field         string `json:"field,omitempty"`
	CorrelationID string `json:"correlationId"`

	// Error is the failure in the words of the worker contract (WC-3).
	Error string `json:"error,omitempty"`
	// Message is Detail again, where Error is.
	Message string `json:"message,omitempty"`
	// State is how the attempt ended: SUCCEEDED, FAILED, CANCELLED.
	State           string `json:"state,omitempty"`
	ExpectedAttempt int    `json:"expectedAttempt,omitempty"`
	ReceivedAttempt int    `json:"receivedAttempt,omitempty"`
	// Formats lists what there is to export to, where that was the problem.
	Formats []string `json:"formats,omitempty"`
}

// The worker contract's words for a refused call.
const (
	ErrorAttemptMismatch     = "attempt_mismatch"
	ErrorTaskExpired         = "task_expired"
	ErrorTaskAlreadyTerminal = "task_already_terminal"
	ErrorWorkerMismatch      = "worker_mismatch"
)
