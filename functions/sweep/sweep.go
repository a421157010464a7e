// Package sweep holds the records against the runner, the executions and the
// clock, and mends what differs. A schedule calls it once a minute; sweeps may
// overlap.
package sweep

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Input is what a sweep is told. Its zero value is what a schedule wants.
type Input struct {
	// EarlySeconds is how far ahead of its time a record counts as overdue;
	// more than 0 after a restart, when whoever was to act may be gone.
	EarlySeconds int `json:"earlySeconds,omitempty"`
}

// Handler makes one sweep. Its output is an empty object; its error joins what
// went wrong, while everything else was done.
func Handler(svc *orchestrator.Service) lambdakit.TaskFunc {
	return lambdakit.Task(func(ctx context.Context, in Input) (struct{}, error) {
		if in.EarlySeconds < 0 {
			return struct{}{}, lambdakit.InvalidInput{Cause: errors.New("earlySeconds is 0 or more")}
		}
		return struct{}{}, svc.Sweep(ctx, time.Duration(in.EarlySeconds)*time.Second)
	})
}
