package runs

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/port"
)

// LeaveToSweep is the choice of a process that leaves work after its commits to a sweep, which
// may run in another process. It implements EndActions, ReplicaRuns, TaskServer and
// TaskStreams.
type LeaveToSweep struct{}

func (LeaveToSweep) actions(*Lifecycle, Config) *Actions { return nil }

func (LeaveToSweep) keeper(*Lifecycle, Config) ReplicaKeeper { return nil }

func (LeaveToSweep) answers(*Lifecycle, Hex) *answer.Streams { return nil }

// NoExecutions is for a process that commits only facts about inference tasks, which have no
// executions. Each call fails.
type NoExecutions struct{}

var _ port.Executions = NoExecutions{}

var errNoExecutions = errors.New("this process has no executions")

// Start implements port.Executions.
func (NoExecutions) Start(context.Context, string, json.RawMessage) error { return errNoExecutions }

// Succeed implements port.Executions.
func (NoExecutions) Succeed(context.Context, string, json.RawMessage) error { return errNoExecutions }

// Fail implements port.Executions.
func (NoExecutions) Fail(context.Context, string, string, string) error { return errNoExecutions }

// Heartbeat implements port.Executions.
func (NoExecutions) Heartbeat(context.Context, string) error { return errNoExecutions }

// Stop implements port.Executions.
func (NoExecutions) Stop(context.Context, string, string) error { return errNoExecutions }

// Describe implements port.Executions.
func (NoExecutions) Describe(context.Context, string) (port.Execution, error) {
	return port.Execution{}, errNoExecutions
}
