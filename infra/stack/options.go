package stack

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/sortie-dev/sortie/shared/base/setting"
)

// OptionSettings configures optional parts of a stack, which cost money or time. All are off by
// default.
type OptionSettings struct {
	// Gradual puts functions and the state machine behind the alias live. A deployment moves a
	// tenth of the calls for 15 minutes and then all calls. It rolls back if an alarm is
	// raised.
	Gradual bool
	// Firewall refuses addresses that AWS lists as harmful.
	Firewall bool
	// ClientLimit is the number of requests of one client token that the firewall admits in
	// five minutes; 0 is no limit. Calls of workers do not count.
	ClientLimit int
	// CanaryPI is the entity that the canary exports and downloads every 15 minutes. If empty,
	// there is no canary.
	CanaryPI string
	// Backup copies the table to a vault each day and keeps each copy for 35 days.
	Backup bool
	// TraceHeaders adds a secret with headers for the exporter of traces.
	TraceHeaders bool
	// Budget is the cost in US dollars a month above which AlarmEmail gets a mail; 0 is no
	// budget.
	Budget int
}

// The limits of the options.
const (
	leastClientLimit = 10 // AWS WAF: the lowest limit of a rate-based rule
	mostClientLimit  = 2_000_000_000
	mostBudget       = 1_000_000
)

var entity = regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`)

// settings returns the keys, bound to s.
func (s *OptionSettings) settings() []setting.Setting {
	return []setting.Setting{
		setting.Bool(&s.Gradual, "gradual", "false", "whether a deployment is gradual, and rolls back on alarms"),
		setting.Bool(&s.Firewall, "firewall", "false", "whether AWS WAF refuses addresses with a bad reputation"),
		setting.Integer(&s.ClientLimit, "clientLimit", "0", "requests of one client token in five minutes that the firewall admits; 0 is no limit", 0, mostClientLimit),
		setting.Pattern(&s.CanaryPI, "canary", "", "the entity that a canary exports and downloads every 15 minutes; empty is no canary", entity),
		setting.Bool(&s.Backup, "backup", "false", "whether AWS Backup copies the table each day, for 35 days"),
		setting.Bool(&s.TraceHeaders, "traceHeaders", "false", "whether the exporter of traces sends the headers of the secret traces"),
		setting.Integer(&s.Budget, "budget", "0", "dollars a month above which alarmEmail gets a mail; 0 is no budget", 0, mostBudget),
	}
}

// contradictions returns the problems of keys that are well-formed on their own.
func (s *OptionSettings) contradictions(all *Settings) []error {
	var problems []error
	if s.ClientLimit > 0 && s.ClientLimit < leastClientLimit {
		problems = append(problems, fmt.Errorf("clientLimit: %d is out of range, want 0 or %d and more", s.ClientLimit, leastClientLimit))
	}
	if s.CanaryPI != "" && all.Service[sourceURL] == "" {
		problems = append(problems, errors.New("canary: requires settings.SOURCE_API_URL, the entity API that has the entity"))
	}
	if s.Budget > 0 && all.AlarmEmail == "" {
		problems = append(problems, errors.New("budget: requires alarmEmail, which gets the mail"))
	}
	return problems
}
