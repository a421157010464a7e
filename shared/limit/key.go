package limit

import "strconv"

// The names of the two buckets unless they are configured: workers write to the
// first, downloads come from the second.
const (
	UploadsBucket  = "arke-exports"
	AcceptedBucket = "arke-exports-accepted"
)

// R2Region is the region of every bucket of R2.
const R2Region = "auto"

// OutputPrefix is the prefix of the keys that the workers of a task may upload
// to.
func OutputPrefix(taskID string) string { return "exports/" + taskID + "/" }

// AttemptPrefix is the prefix of the keys that the envelope of one attempt grants.
func AttemptPrefix(taskID string, attempt int) string {
	return OutputPrefix(taskID) + "attempt-" + strconv.Itoa(attempt) + "/"
}

// AttemptOutput is the key of the output that an envelope grants.
func AttemptOutput(taskID string, attempt int) string {
	return AttemptPrefix(taskID, attempt) + "output"
}

// AttemptLog is the key of the log that an envelope grants.
func AttemptLog(taskID string, attempt int) string { return AttemptPrefix(taskID, attempt) + "log" }

// InputKey is the key of the standard input of a task's program. It has the prefix of
// the logs, because it is kept as long as they are.
func InputKey(tenant, taskID string) string { return LogPrefix(tenant, taskID) + "input" }

// LogPrefix is the prefix of the stored logs and the input of a task.
func LogPrefix(tenant, taskID string) string { return tenant + "/logs/" + taskID + "/" }

// LiveLogHead returns the key of the newest output that an attempt's worker has sent.
func LiveLogHead(tenant, taskID string, attempt int) string {
	return LogPrefix(tenant, taskID) + strconv.Itoa(attempt) + "/head"
}

// LiveLogSegment returns the key of older output that an attempt's worker has sent: the
// chunks first to last.
func LiveLogSegment(tenant, taskID string, attempt, first, last int) string {
	return LogPrefix(tenant, taskID) + strconv.Itoa(attempt) + "/" + strconv.Itoa(first) + "-" + strconv.Itoa(last)
}

// LogKey is the key of the stored log of an attempt.
func LogKey(tenant, taskID string, attempt int) string {
	return LogPrefix(tenant, taskID) + strconv.Itoa(attempt) + ".log"
}

// ArtifactKey is the key of the content of an artifact. nonce distinguishes it from that of
// an earlier artifact with the same id, which may be being removed.
func ArtifactKey(tenant, id, nonce string) string {
	return tenant + "/artifacts/" + id + "/" + nonce
}
