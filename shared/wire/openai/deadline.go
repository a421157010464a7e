package openai

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
)

// FieldDeadline is the member with the deadline of a request. OpenAI's API does not have it;
// clients send it with extra_body.
const FieldDeadline = "deadline_ms"

// deadline returns the value of FieldDeadline; 0 if it is not set. Fault: DeadlineUnmet with the
// field if it is out of range.
func deadline(ms *int64) (time.Duration, error) {
	if ms == nil {
		return 0, nil
	}
	if most := inference.MostWithin.Milliseconds(); *ms < 1 || *ms > most {
		f := fault.New(fault.DeadlineUnmet, "%d ms is out of range, want 1 to %d", *ms, most)
		f.Field = FieldDeadline
		return 0, f
	}
	return time.Duration(*ms) * time.Millisecond, nil
}
