package spec

import (
	"time"

	"github.com/oklog/ulid/v2"
)

// JobTaskID returns the task id of a job's run: "job_" and a ULID.
func JobTaskID(at time.Time, entropy [10]byte) string { return taskID("job_", at, entropy) }

// InferenceTaskID returns the task id of an inference run: "inf_" and a ULID.
func InferenceTaskID(at time.Time, entropy [10]byte) string { return taskID("inf_", at, entropy) }

func taskID(prefix string, at time.Time, entropy [10]byte) string {
	var id ulid.ULID
	_ = id.SetTime(uint64(max(at.UnixMilli(), 0))) // fails only after the year 10889
	copy(id[6:], entropy[:])
	return prefix + id.String()
}
