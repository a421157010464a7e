package limit

import "strconv"

// The default names of the two buckets. Workers write to the first; downloads are served from
// the second.
const (
	UploadsBucket  = "arke-exports"
	AcceptedBucket = "arke-exports-accepted"
)

// R2Region is the region of every R2 bucket.
const R2Region = "auto"

// OutputPrefix returns the prefix of the keys to which the workers of a task may upload.
func OutputPrefix(taskID string) string { return "exports/" + taskID + "/" }

// AttemptPrefix returns the prefix of the keys to which the envelope of one attempt grants
// access.
func AttemptPrefix(taskID string, attempt int) string {
	return OutputPrefix(taskID) + "attempt-" + strconv.Itoa(attempt) + "/"
}

// AttemptOutput returns the key of the output of an attempt, as granted by its envelope.
func AttemptOutput(taskID string, attempt int) string {
	return AttemptPrefix(taskID, attempt) + "output"
}

// AttemptLog returns the key of the log of an attempt, as granted by its envelope.
func AttemptLog(taskID string, attempt int) string { return AttemptPrefix(taskID, attempt) + "log" }

// InputKey returns the key of the standard input of a task's program. It has the prefix of the
// logs, because it is kept as long as they are.
func InputKey(tenant, taskID string) string { return LogPrefix(tenant, taskID) + "input" }

// UpstreamKey returns the key of the description of the runs that a task came after. It is kept as
// long as the input.
func UpstreamKey(tenant, taskID string) string { return LogPrefix(tenant, taskID) + "upstream" }

// LogPrefix returns the prefix of the stored logs, the input and the upstream runs of a task.
func LogPrefix(tenant, taskID string) string { return tenant + "/logs/" + taskID + "/" }

// LiveLogHead returns the key of the newest output that the worker of an attempt has sent.
func LiveLogHead(tenant, taskID string, attempt int) string {
	return LogPrefix(tenant, taskID) + strconv.Itoa(attempt) + "/head"
}

// LiveLogSegment returns the key of older output that the worker of an attempt has sent: the
// chunks from first to last.
func LiveLogSegment(tenant, taskID string, attempt, first, last int) string {
	return LogPrefix(tenant, taskID) + strconv.Itoa(attempt) + "/" + strconv.Itoa(first) + "-" + strconv.Itoa(last)
}

// LogKey returns the key of the stored log of an attempt.
func LogKey(tenant, taskID string, attempt int) string {
	return LogPrefix(tenant, taskID) + strconv.Itoa(attempt) + ".log"
}

// ArtifactKey returns the key of the content of an artifact. nonce distinguishes it from an
// earlier artifact with the same id, which may still be in deletion.
func ArtifactKey(tenant, id, nonce string) string {
	return tenant + "/artifacts/" + id + "/" + nonce
}
