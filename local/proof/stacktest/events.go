package stacktest

import (
	"fmt"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// CheckEvents checks the events of an ended task: numbers without gaps, and exactly one final
// event.
func CheckEvents(events []contract.TaskEvent) error {
	ends := 0
	for i, e := range events {
		if e.Seq != i+1 {
			return fmt.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		switch e.Type {
		case "job.completed", "job.skipped", "job.failed", "job.cancelled", "job.orphaned":
			ends++
		}
	}
	if ends != 1 {
		return fmt.Errorf("%d events of the end in %d events, want 1", ends, len(events))
	}
	return nil
}
