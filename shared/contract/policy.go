package contract

// Policy is what a run is held to, where its request says so; absent members
// have this Sortie's defaults. All spans are whole seconds.
type Policy struct {
	// TimeLimitSeconds is how long an attempt may run: 3 to 14 days.
	TimeLimitSeconds *int `json:"timeLimitSeconds,omitempty"`
	// StartTimeoutSeconds is until a machine must run.
	StartTimeoutSeconds *int `json:"startTimeoutSeconds,omitempty"`
	// HeartbeatIntervalSeconds is how often the worker is asked to call,
	// HeartbeatTimeoutSeconds how long it may be silent once it was heard: at
	// least twice the interval, and less than the time limit.
	HeartbeatIntervalSeconds *int `json:"heartbeatIntervalSeconds,omitempty"`
	HeartbeatTimeoutSeconds  *int `json:"heartbeatTimeoutSeconds,omitempty"`
	// CancelGraceSeconds is how long the worker may take to end when asked to.
	CancelGraceSeconds *int         `json:"cancelGraceSeconds,omitempty"`
	Retry              *RetryPolicy `json:"retry,omitempty"`
}

// RetryPolicy says how often and when a run is tried again.
type RetryPolicy struct {
	// MaxAttempts counts all tries whose machine started, 1 to 100; 1 is no
	// retry.
	MaxAttempts         *int `json:"maxAttempts,omitempty"`
	InitialDelaySeconds *int `json:"initialDelaySeconds,omitempty"`
	// Multiplier is 1 to 10, per further failure.
	Multiplier      *float64 `json:"multiplier,omitempty"`
	MaxDelaySeconds *int     `json:"maxDelaySeconds,omitempty"`
	// Jitter is the part of the delay that chance may take away, 0 to 1.
	Jitter *float64 `json:"jitter,omitempty"`
	// Categories are the only ones that are tried again; absent is what the
	// worker contract says of each (WC-6).
	Categories []string `json:"categories,omitempty"`
}
