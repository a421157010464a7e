// Package sweep compares the records with the runner, the executions and the
// clock, and repairs differences. A schedule invokes it once a minute; sweeps
// may overlap. An event about an ended execution makes it check only that run.
package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// The EventBridge events that the function accepts (EventBridge events
// reference: "Scheduled Event" and "Step Functions Execution Status Change").
const (
	scheduled     = "Scheduled Event"
	statusChanged = "Step Functions Execution Status Change"
)

// Input is the input of a sweep: empty, or an event of EventBridge.
type Input struct {
	// EarlySeconds is the number of seconds before its due time at which a record counts as
	// overdue. It is above 0 after a restart, when the process that was to act may be gone.
	EarlySeconds int `json:"earlySeconds,omitempty"`
	// DetailType and Detail are the fields of an event.
	DetailType string `json:"detail-type,omitempty"`
	Detail     Change `json:"detail,omitzero"`
}

// Change has the fields of an execution's status change that the sweep uses.
type Change struct {
	// Name is the name of the execution.
	Name   string               `json:"name,omitempty"`
	Status port.ExecutionStatus `json:"status,omitempty"`
	// Input is the execution's input, JSON in a string: a run's reference.
	Input string `json:"input,omitempty"`
}

// Sensors looks for the items of the sensors of jobs; see sensors.Polls.
type Sensors interface {
	PollDue(ctx context.Context) error
}

// NoSensors is for a process that polls no sensors.
type NoSensors struct{}

// PollDue implements Sensors.
func (NoSensors) PollDue(context.Context) error { return nil }

// pollReserve is the part of the time of a sweep that is left after its polls.
const pollReserve = 10 * time.Second

// Handler performs one sweep, with the polls of the sensors beside it, or checks the run of an ended
// execution. Its output is an empty object. Its error joins the errors of all parts; an error
// in one part does not stop the others.
func Handler(svc *runs.Sweeper, polls Sensors) lambdakit.TaskFunc {
	return lambdakit.Task(func(ctx context.Context, in Input) (struct{}, error) {
		switch in.DetailType {
		case "", scheduled:
			if in.EarlySeconds < 0 {
				return struct{}{}, lambdakit.InvalidInput{Cause: errors.New("negative earlySeconds, want 0 or more")}
			}
			polled := make(chan error, 1)
			go func() { polled <- pollDue(ctx, polls) }()
			err := svc.Sweep(ctx, time.Duration(in.EarlySeconds)*time.Second)
			return struct{}{}, errors.Join(err, <-polled)
		case statusChanged:
			return struct{}{}, changed(ctx, svc, in.Detail)
		}
		return struct{}{}, lambdakit.InvalidInput{Cause: fmt.Errorf("unsupported event %q", in.DetailType)}
	})
}

// pollDue polls the sensors. A panic is an error: it must not end the process during a sweep.
func pollDue(ctx context.Context, polls Sensors) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("a poll of a sensor panicked: %v", reason)
		}
	}()
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-pollReserve))
		defer cancel()
	}
	return polls.PollDue(ctx)
}

func changed(ctx context.Context, svc *runs.Sweeper, c Change) error {
	var ref run.Ref
	if err := json.Unmarshal([]byte(c.Input), &ref); err != nil || ref.Tenant == "" || ref.ID == "" || c.Name == "" || c.Status == "" {
		return lambdakit.InvalidInput{Cause: errors.New("malformed event, want a status, a name and a run reference as input")}
	}
	if c.Status == port.ExecutionRunning {
		return nil
	}
	return svc.ExecutionEnded(ctx, ref, c.Name)
}
