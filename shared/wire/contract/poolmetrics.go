package contract

import "time"

// WarmCounts counts the warm machines of a pool: those that are created or recycled (Creating),
// ready, claimed by a run, and destroyed at present (Ending).
type WarmCounts struct {
	Creating int `json:"creating"`
	Ready    int `json:"ready"`
	Claimed  int `json:"claimed"`
	Ending   int `json:"ending"`
}

// PoolMetrics are the metrics of a pool.
type PoolMetrics struct {
	Limit              int     `json:"limit"`
	QueueLimit         int     `json:"queueLimit"`
	LongestWaitSeconds float64 `json:"longestWaitSeconds"`
	// StartingMachines is the number of machines that were not yet observed running.
	StartingMachines int `json:"startingMachines"`
	// MeasuredStarts is the number of starts from which the two percentiles are computed. They
	// are absent without a start.
	MeasuredStarts  int      `json:"measuredStarts"`
	StartP50Seconds *float64 `json:"startP50Seconds,omitempty"`
	StartP99Seconds *float64 `json:"startP99Seconds,omitempty"`
	// StartsPerSecond is the number of starts a second that the limits of all apps permit now.
	// It is absent before the first start. It is also absent for a platform without a
	// documented limit that has throttled no start. NextStartAt is the time of the next
	// permitted start, if that is in the future.
	StartsPerSecond *float64  `json:"startsPerSecond,omitempty"`
	NextStartAt     time.Time `json:"nextStartAt,omitzero"`
	// RecentStartsPerSecond is the number of starts a second in the last minute.
	RecentStartsPerSecond float64 `json:"recentStartsPerSecond"`
	// ExpectedWait is the estimated time until the machine of a run that is submitted now runs.
	// The run has priority normal. The estimate is the same as that of a plan. It is absent
	// while the pool drains or its queue is full.
	ExpectedWait *PoolWait `json:"expectedWait,omitempty"`
}

// PoolError is a failure of an attempt.
type PoolError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
