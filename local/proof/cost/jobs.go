package cost

import (
	"fmt"
	"strings"
)

// jobBill is the usage that a job or event adds to a bill.
type jobBill struct {
	name  string
	usage Usage
}

// The maximum write units of a scheduled run in a pool with a limit, of a skipped firing, and
// of a job that does not fire for a month. Tests of the store's adapter count them:
// TestScheduledRunCostsAtMostSeventyWriteUnits and TestJobCosts.
const (
	scheduledWrites = 70
	skippedWrites   = 16
	idleWrites      = 0
)

// jobBills returns the bills of jobs. A scheduled run has the transitions of an export and one
// more for the constraints. It has the same report, output and reads as an export. One wake-up
// invokes one function, which sets the next wake-up by a free call of EventBridge Scheduler. A
// skipped firing starts no execution.
func (m Measured) jobBills() []jobBill {
	plain, ok := m.Row(RowPlain)
	if !ok {
		return nil
	}
	wakeUp := Usage{WakeUps: 1, LambdaRequests: 1}
	scheduled := plain.Usage.Plus(wakeUp).Plus(Usage{Transitions: 1})
	scheduled[WriteUnits] = scheduledWrites
	skipped := wakeUp.Plus(Usage{WriteUnits: skippedWrites, ReadUnits: 1, Events: 1})
	return []jobBill{
		{"a scheduled run with constraints, at most", scheduled},
		{"a skipped firing, at most", skipped},
		{"a month of a job that does not fire", Usage{WriteUnits: idleWrites}},
	}
}

// Jobs returns the table of jobs as Markdown.
func (m Measured) Jobs() string {
	var text strings.Builder
	text.WriteString("| of a job | write units | transitions | wake-ups | functions | $ a million |\n|---|---:|---:|---:|---:|---:|\n")
	for _, b := range m.jobBills() {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %.2f |\n", b.name, figure(b.usage[WriteUnits]), figure(b.usage[Transitions]),
			figure(b.usage[WakeUps]), figure(b.usage[LambdaRequests]), Dollars(b.usage)*1e6)
	}
	return text.String()
}
