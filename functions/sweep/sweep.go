// Package sweep holds the records against the runner, the executions and the
// clock, and mends what differs. A schedule calls it once a minute; sweeps may
// overlap. In between it is told of executions that ended, and looks at their
// runs alone.
package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// The events of EventBridge that are known here (EventBridge events reference:
// "Scheduled Event" and "Step Functions Execution Status Change").
const (
	scheduled     = "Scheduled Event"
	statusChanged = "Step Functions Execution Status Change"
)

// Input is what a sweep is told: nothing, by whoever wants one at once, or an
// event of EventBridge.
type Input struct {
	// EarlySeconds is how far ahead of its time a record counts as overdue;
	// more than 0 after a restart, when whoever was to act may be gone.
	EarlySeconds int `json:"earlySeconds,omitempty"`
	// DetailType and Detail are an event's.
	DetailType string `json:"detail-type,omitempty"`
	Detail     Change `json:"detail,omitzero"`
}

// Change is the part of an execution's change of status that is needed.
type Change struct {
	// Name is the execution's.
	Name   string               `json:"name,omitempty"`
	Status port.ExecutionStatus `json:"status,omitempty"`
	// Input is the execution's input, JSON in a string: a run's reference.
	Input string `json:"input,omitempty"`
}

// Handler makes one sweep, or looks at the run of an execution that ended. Its
// output is an empty object; its error joins what went wrong, while everything
// else was done.
func Handler(svc *orchestrator.Sweeper) lambdakit.TaskFunc {
	return lambdakit.Task(func(ctx context.Context, in Input) (struct{}, error) {
		switch in.DetailType {
		case "", scheduled:
			if in.EarlySeconds < 0 {
				return struct{}{}, lambdakit.InvalidInput{Cause: errors.New("earlySeconds is 0 or more")}
			}
			return struct{}{}, svc.Sweep(ctx, time.Duration(in.EarlySeconds)*time.Second)
		case statusChanged:
			return struct{}{}, changed(ctx, svc, in.Detail)
		}
		return struct{}{}, lambdakit.InvalidInput{Cause: fmt.Errorf("the event %q is not for a sweep", in.DetailType)}
	})
}

func changed(ctx context.Context, svc *orchestrator.Sweeper, c Change) error {
	var ref run.Ref
	if err := json.Unmarshal([]byte(c.Input), &ref); err != nil || ref.Tenant == "" || ref.ID == "" || c.Name == "" || c.Status == "" {
		return lambdakit.InvalidInput{Cause: errors.New("the event has no status, no name, or no input that refers to a run")}
	}
	if c.Status == port.ExecutionRunning {
		return nil
	}
	return svc.ExecutionEnded(ctx, ref, c.Name)
}
