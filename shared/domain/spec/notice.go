package spec

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
