package cost

import (
	"fmt"
	"strings"
)

// quarters is the number of the canary's exports in a month of 30 days.
const quarters = 30 * 24 * 4

// option is an optional part of a stack.
type option struct {
	// setting is the name of the setting in infra/README.md.
	setting string
	// month is the monthly usage that does not depend on the load.
	month Usage
	// also describes further costs.
	also string
}

// options returns the options of a stack. plain is the usage of an export.
func options(plain Usage) []option {
	canary := plain.Times(quarters).Plus(Usage{
		LambdaRequests: quarters, LambdaGBs: quarters * functionGB, SecretMonths: 1, AlarmMonths: 1,
		APIRequests: 2 * quarters, // for the repeated submission and a second status request
	})
	return []option{
		{"gradual", nil, "CodeDeploy for Lambda and aliases are free"},
		{"firewall", Usage{FirewallMonths: 1, RuleMonths: 1}, fmt.Sprintf("$%.2f for a million requests", prices[FirewallRequests]*1e6)},
		{"clientLimit", Usage{FirewallMonths: 1, RuleMonths: 1}, "with `firewall` only the rule"},
		{"canary", canary, "and a machine for a minute, each 15 minutes"},
		{"backup", nil, fmt.Sprintf("$%.2f a GB of the table for each of 35 copies", prices[BackupGBMonths])},
		{"budget", nil, "budgets without actions are free"},
		{"tracing", nil, fmt.Sprintf("$%.2f for a million traces", prices[Traces]*1e6)},
		{"alarmEmail", nil, "the first 1,000 mails of a month are free"},
	}
}

// Options returns the costs of the options of a stack as a Markdown list.
func (m Measured) Options() string {
	plain, ok := m.Row(RowPlain)
	if !ok {
		return ""
	}
	var text strings.Builder
	for _, o := range options(plain.Usage) {
		fmt.Fprintf(&text, "- `%s`: $%.2f a month; %s\n", o.setting, Dollars(o.month), o.also)
	}
	return text.String()
}
