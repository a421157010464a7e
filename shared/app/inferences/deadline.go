package inferences

import (
	"cmp"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// longestDeadline returns the longest deadline of a request in the deployment: Config.MostWithin
// if its caller waits for the answer, otherwise inference.MostWithin.
func (s *Inference) longestDeadline(in NewTask) time.Duration {
	if in.waits {
		return s.config.MostWithin
	}
	return inference.MostWithin
}

// checkDeadline returns a DeadlineUnmet, with the field, for a deadline that is longer than most.
// of names what has the limit.
func checkDeadline(in NewTask, most time.Duration, of string) error {
	if in.Within >= 0 && in.Within <= most {
		return nil
	}
	f := fault.New(fault.DeadlineUnmet, "%d ms is out of range, want 1 to %d, the limit of %s", in.Within.Milliseconds(), most.Milliseconds(), of)
	f.Field = cmp.Or(in.WithinField, "deadline_ms")
	return f
}

// limitOf names the limit of a request.
func limitOf(in NewTask) string {
	if in.waits {
		return "a request whose caller waits"
	}
	return "a task"
}

// deadlineOf returns the deadline of a request in a pool, counted from its creation. Fault:
// DeadlineUnmet with the field, if it exceeds the limit of the pool.
func (s *Inference) deadlineOf(in NewTask, e *platform.EnginePlace) (time.Duration, error) {
	most := s.longestDeadline(in)
	if own := e.MaxDeadline(); own > 0 && own < most {
		most = own
		if err := checkDeadline(in, most, "the pool"); err != nil {
			return 0, err
		}
	}
	return min(cmp.Or(in.Within, e.Deadline(), inference.DefaultWithin), most), nil
}
