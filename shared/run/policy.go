package run

import (
	"math"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Policy is what a run is held to. Durations are whole seconds.
type Policy struct {
	// StartTimeout is how long a machine may take from the create call until it
	// is seen running.
	StartTimeout time.Duration `json:"startTimeout"`
	// TimeLimit is how long an attempt may run; nothing extends it.
	TimeLimit time.Duration `json:"timeLimit"`
	// HeartbeatInterval is how often a worker is asked to call, and
	// HeartbeatTimeout how long it may be silent once it was heard.
	HeartbeatInterval time.Duration `json:"heartbeatInterval"`
	HeartbeatTimeout  time.Duration `json:"heartbeatTimeout"`
	// CancelGrace is how long a worker may take to end when it is asked to.
	CancelGrace time.Duration `json:"cancelGrace"`
	// QueueTimeout is how long a run may wait for a slot.
	QueueTimeout time.Duration `json:"queueTimeout"`
	// OutputRetention counts from the moment the output is kept,
	// RecordRetention from the run's end.
	OutputRetention time.Duration `json:"outputRetention"`
	RecordRetention time.Duration `json:"recordRetention"`
	Retry           Retry         `json:"retry"`
}

// Retry says how often and when a run is tried again.
type Retry struct {
	// MaxAttempts counts all attempts whose machine started; 1 is no retry.
	MaxAttempts int `json:"maxAttempts"`
	// MaxFurtherStarts counts the further tries after a machine that never
	// started; they spend no attempt. 0 is none.
	MaxFurtherStarts int           `json:"maxFurtherStarts"`
	InitialDelay     time.Duration `json:"initialDelay"`
	Multiplier       float64       `json:"multiplier"`
	MaxDelay         time.Duration `json:"maxDelay"`
	// Jitter is the part of the delay that chance may take away, 0 to 1.
	Jitter float64 `json:"jitter"`
	// Categories are the only ones whose failures are tried again; none is what
	// each fault says of itself (WC-6). Machines that never
	// started, and those that somebody else stopped, are not held to them.
	Categories []fault.Category `json:"categories,omitempty"`
}

// allows says whether the client wants failures of the category tried again.
func (r Retry) allows(c fault.Category) bool {
	return len(r.Categories) == 0 || slices.Contains(r.Categories, c)
}

// Delay is the time before the next try after n failures (n >= 1): initial,
// times the multiplier for each further failure, at most the maximum, less the
// part of the jitter that roll (0 <= roll < 1) takes. It is at least a second.
func (r Retry) Delay(n int, roll float64) time.Duration {
	delay := float64(r.InitialDelay) * math.Pow(max(r.Multiplier, 1), float64(max(n, 1)-1))
	delay = min(delay, float64(r.MaxDelay))
	delay *= 1 - r.Jitter*roll
	return max(time.Duration(delay), time.Second)
}
