package run

import (
	"strconv"
	"time"
)

// Service is a receiver of notifications whose format Sortie knows.
type Service string

// The services.
const (
	ServiceSlack     Service = "slack"     // an incoming webhook
	ServiceTeams     Service = "teams"     // a webhook of a workflow of Microsoft Teams
	ServicePagerDuty Service = "pagerduty" // the Events API v2
	ServiceEmail     Service = "email"     // a mail server
)

// Services lists all services.
func Services() []Service {
	return []Service{ServiceSlack, ServiceTeams, ServicePagerDuty, ServiceEmail}
}

// Severity is the severity of an event of PagerDuty.
type Severity string

// Severities lists all severities, the most severe first.
func Severities() []Severity { return []Severity{"critical", "error", "warning", "info"} }

// Notice is the content of a notification. Text, Subject and Body are templates; see Expand and
// NoticeNames.
type Notice struct {
	// Service is empty for a webhook, whose body is Body.
	Service Service `json:"service,omitempty"`
	// Text replaces the message of the service; empty for the standard text.
	Text     string   `json:"text,omitempty"`
	Severity Severity `json:"severity,omitempty"`
	Body     string   `json:"body,omitempty"`
	// The others are for ServiceEmail.
	Subject  string   `json:"subject,omitempty"`
	Host     string   `json:"host,omitempty"`
	Port     int      `json:"port,omitempty"`
	Username string   `json:"username,omitempty"`
	From     string   `json:"from,omitempty"`
	To       []string `json:"to,omitempty"`
}

// NoticeNames lists the names that a template of a notice can have, beside those of inputs.
func NoticeNames() []string {
	return []string{"jobId", RunName, "taskId", "event", "state", "attempt", ScheduledName, "faultCode", "message", "url"}
}

// DefaultText and DefaultSubject are the templates of a notice without its own.
const (
	DefaultSubject = "Job {{jobId}}: {{event}}"
	DefaultText    = "Job {{jobId}}: {{event}}, run {{runId}}, attempt {{attempt}}. {{message}} {{url}}"
)

// NoticeValue returns the value of a name in a template of a notice about an action of the run.
// pages is the address of the pages of runs; empty without one.
func (r Run) NoticeValue(name string, action EndAction, pages string) (value string, known bool) {
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
	case ScheduledName:
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
