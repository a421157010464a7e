package stacktest

import (
	"fmt"

	"github.com/sortie-dev/sortie/shared/contract"
)

// CheckEvents says what is wrong with all the events of a task that has ended:
// their numbers have a gap, or there is not exactly one end.
func CheckEvents(events []contract.TaskEvent) error {
	ends := 0
	for i, e := range events {
		if e.Seq != i+1 {
			return fmt.Errorf("the events have a gap at %d", i+1)
		}
		switch e.Type {
		case "job.completed", "job.failed", "job.cancelled", "job.orphaned":
			ends++
		}
	}
	if ends != 1 {
		return fmt.Errorf("there are %d ends in %d events", ends, len(events))
	}
	return nil
}
