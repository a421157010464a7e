package api

import (
	"crypto/sha1" //nolint:gosec // a version 5 UUID is a SHA-1 hash (RFC 9562)
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// updateSpace is the UUID namespace of update ids.
var updateSpace = []byte{0x6f, 0x1c, 0x8f, 0x0e, 0x3a, 0x51, 0x4d, 0x0c, 0x9d, 0x2e, 0x5b, 0x8a, 0x2f, 0x6f, 0x7f, 0x10}

// UpdateID returns the id of the update for an event: the version 5 UUID of "RUN_ID/SEQ".
func UpdateID(runID string, seq int) string {
	id := sha1.Sum(fmt.Appendf(slices.Clone(updateSpace), "%s/%d", runID, seq)) //nolint:gosec // as above
	id[6], id[8] = id[6]&0x0f|0x50, id[8]&0x3f|0x80                             // set the version and the variant
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

// Updates returns the items of GET /v1/runs/{run_id}/updates: one for each transition and for
// each event with a fault. events must be all events of the run, from the first.
func Updates(r run.Run, events []run.Event) []contract.RunUpdate {
	var updates []contract.RunUpdate
	u := contract.RunUpdate{RunID: r.ID, JobID: r.JobID, ScheduledAt: r.ScheduledAt}
	failed := 0 // the last attempt that failed and is retried
	for _, e := range events {
		moved := e.From != e.State
		if moved && e.State == run.Retrying {
			failed, u.RetryAttempt = e.Attempt, e.Attempt
		}
		attempt := max(e.Attempt-1, 0)
		if e.Attempt == failed {
			attempt = failed
		}
		if attempt != u.RetryAttempt || moved && e.From == run.Retrying {
			u.RetryAttempt, u.StartedAt, u.ExitCode, u.Logs = attempt, time.Time{}, nil, ""
		}
		if moved && e.State == run.Running {
			u.StartedAt = e.At
		}
		if e.Exit != nil {
			u.ExitCode = &e.Exit.Code
		}
		if moved && e.From == run.Terminating && slices.Contains(r.Logs, e.Attempt) {
			u.Logs = "/v1/tasks/" + url.PathEscape(r.TaskID) + "/logs?attempt=" + strconv.Itoa(e.Attempt)
		}
		if !moved && e.Fault == nil {
			continue
		}
		u.UpdateID, u.Seq, u.OccurredAt, u.Status, u.Error = UpdateID(r.ID, e.Seq), e.Seq, e.At, string(e.State), ""
		if e.Fault != nil {
			u.Error = e.Fault.Message
		}
		if e.State.Terminal() && moved {
			u.CompletedAt, u.Success = e.At, e.State == run.Completed && !r.Skipped
			if r.Attempt.Exit != nil && u.ExitCode == nil {
				u.ExitCode = &r.Attempt.Exit.Code
			}
		}
		updates = append(updates, u)
	}
	return updates
}
