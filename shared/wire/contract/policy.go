package contract

// Policy contains the limits and the retry policy of a run. The deployment has defaults for
// absent members. All durations are whole seconds.
type Policy struct {
	// TimeLimitSeconds is the maximum duration of an attempt: 3 s to 14 days.
	TimeLimitSeconds *int `json:"timeLimitSeconds,omitempty"`
	// StartTimeoutSeconds is the maximum time until a machine runs.
	StartTimeoutSeconds *int `json:"startTimeoutSeconds,omitempty"`
	// HeartbeatIntervalSeconds is the recommended time between heartbeats.
	// HeartbeatTimeoutSeconds is the maximum time between two calls of a worker that has called
	// before. It is at least twice the interval and less than the time limit.
	HeartbeatIntervalSeconds *int `json:"heartbeatIntervalSeconds,omitempty"`
	HeartbeatTimeoutSeconds  *int `json:"heartbeatTimeoutSeconds,omitempty"`
	// CancelGraceSeconds is the time that a worker has to stop after a cancel request.
	CancelGraceSeconds *int `json:"cancelGraceSeconds,omitempty"`
	// DeadlineSeconds is the maximum time from the creation of the run, or from its scheduled
	// time if that is later, to its end, over all attempts; absent means no limit.
	DeadlineSeconds *int         `json:"deadlineSeconds,omitempty"`
	Retry           *RetryPolicy `json:"retry,omitempty"`
}

// RetryPolicy sets how often and when a run is retried.
type RetryPolicy struct {
	// MaxAttempts is the maximum number of attempts whose machine started, 1 to 100. The value
	// 1 disables retries.
	MaxAttempts         *int `json:"maxAttempts,omitempty"`
	InitialDelaySeconds *int `json:"initialDelaySeconds,omitempty"`
	// Multiplier is the growth of the delay per failure, 1 to 10.
	Multiplier      *float64 `json:"multiplier,omitempty"`
	MaxDelaySeconds *int     `json:"maxDelaySeconds,omitempty"`
	// Jitter is the fraction of the delay that is randomly subtracted, 0 to 1.
	Jitter *float64 `json:"jitter,omitempty"`
	// Categories are the error categories that are retried. If absent, the defaults of the
	// worker contract apply (WC-6).
	Categories []string `json:"categories,omitempty"`
}
