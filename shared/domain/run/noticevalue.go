package run

import (
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// NoticeValue returns the value of a name in a template of a notice about an action of the run.
// pages is the address of the pages of runs; empty without one.
func (r Run) NoticeValue(name string, action spec.EndAction, pages string) (value string, known bool) {
	event, attempt := action.Event()
	if attempt == 0 {
		attempt = r.Attempt.Number
	}
	code, message := r.noticeFault()
	switch name {
	case "jobId":
		return r.JobID, true
	case "taskId":
		return r.TaskID, true
	case "event":
		return string(event), true
	case "state":
		return string(r.State), true
	case "attempt":
		return strconv.Itoa(attempt), true
	case spec.ScheduledName:
		return r.Scheduled().Format(time.RFC3339), true
	case "faultCode":
		return code, true
	case "message":
		return message, true
	case "url":
		if pages == "" {
			return "", true
		}
		return pages + r.TaskID, true
	}
	return r.templateValue(name)
}

// noticeFault returns the code and the message of what a notice is about: the fault of the run, or
// its last violation, or the reason of its skip.
func (r Run) noticeFault() (code, message string) {
	switch {
	case r.Fault != nil:
		return string(r.Fault.Code), string(r.Fault.Code) + ": " + r.Fault.Message
	case len(r.Violations) > 0:
		return "", describe(r.Violations[len(r.Violations)-1:])
	case r.Missed != nil:
		return "", "skipped: " + string(r.Missed.Reason)
	case r.Overflowed != nil:
		return "", "skipped: the queue of its key is full"
	}
	return "", ""
}
