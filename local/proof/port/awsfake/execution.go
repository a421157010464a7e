package awsfake

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// Limits of the API (AWS Step Functions Developer Guide, "Quotas", and API
// Reference).
const (
	maxData  = 256 << 10
	maxToken = 2048
	maxError = 256
	maxCause = 32768
)

// execution has what the service knows about an execution besides its states.
type execution struct {
	input   string
	started time.Time
	// ended is the time at which the end was first described.
	ended time.Time
	// events is the length of the history. full is true after it has exceeded the maximum.
	events int
	full   bool
}

func waitsForToken(resource string) bool { return strings.HasSuffix(resource, ".waitForTaskToken") }

// Entered adds the history events of a state that an execution has entered. It does not call
// the execution. Enforce ends the executions whose history is full.
func (s *StepFunctions) Entered(name, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[name]
	if r == nil {
		r = &execution{} // StartExecution has not returned yet
		s.records[name] = r
	}
	r.events += s.events[state]
	r.full = r.full || r.events > s.config.MaxHistory
}

// History returns the number of events of an execution.
func (s *StepFunctions) History(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[name]; r != nil {
		return r.events
	}
	return 0
}

// Enforce ends the execution if its history is full, and reports whether it ended it.
func (s *StepFunctions) Enforce(ctx context.Context, name string) (bool, error) {
	s.mu.Lock()
	r := s.records[name]
	full := r != nil && r.full && r.ended.IsZero()
	if full {
		r.ended = s.config.Clock.Now()
	}
	s.mu.Unlock()
	if !full {
		return false, nil
	}
	return true, s.config.Executions.Stop(ctx, name, fullCause)
}

const fullCause = "the execution reached the maximum number of history events"

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// seconds returns a time in the form of the API, in seconds since 1970.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

type startExecution struct{ StateMachineArn, Name, Input string }

func (r *startExecution) call() (string, bool) { return r.Name, true }

func (s *StepFunctions) start(ctx context.Context, _ Call, r *startExecution, _ Fate) (any, error) {
	if machine := r.StateMachineArn; machine != s.machine && !strings.HasPrefix(machine, s.machine+":") {
		return nil, refuse("StateMachineDoesNotExist", "state machine does not exist: %s", machine)
	}
	switch {
	case !namePattern.MatchString(r.Name):
		return nil, refuse("InvalidName", "invalid name: %s", r.Name)
	case !json.Valid([]byte(r.Input)):
		return nil, refuse("InvalidExecutionInput", "invalid state machine execution input")
	case len(r.Input) > maxData:
		return nil, invalid("got an input of %d bytes, want at most %d", len(r.Input), maxData)
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	now := s.config.Clock.Now()
	x, err := s.config.Executions.Describe(ctx, r.Name)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return nil, internal(err)
	}
	s.mu.Lock()
	known := s.records[r.Name]
	if err == nil && known != nil && (x.Status != port.ExecutionRunning || known.input != r.Input) {
		s.mu.Unlock()
		return nil, refuse("ExecutionAlreadyExists", "execution already exists: %s", s.executionPrefix+r.Name)
	}
	if err != nil || known == nil {
		known = &execution{input: r.Input, started: now}
		s.records[r.Name] = known
	}
	started := known.started
	s.mu.Unlock()
	if err != nil {
		if err := s.config.Executions.Start(ctx, r.Name, json.RawMessage(r.Input)); err != nil {
			return nil, internal(err)
		}
	}
	return map[string]any{"executionArn": s.executionPrefix + r.Name, "startDate": seconds(started)}, nil
}

// internal returns the error for a failure of the implementation that executes the states.
func internal(err error) error {
	return &refusal{code: "InternalFailure", message: err.Error(), status: 500}
}

// aboutExecution has the fields of StopExecution and DescribeExecution.
type aboutExecution struct{ ExecutionArn, Cause, Error string }

// name returns the name of the execution, the last part of its ARN.
func (r *aboutExecution) name() string {
	return r.ExecutionArn[strings.LastIndex(r.ExecutionArn, ":")+1:]
}

type stopExecution struct{ aboutExecution }

func (r *stopExecution) call() (string, bool) { return r.name(), true }

func (s *StepFunctions) stop(ctx context.Context, _ Call, r *stopExecution, _ Fate) (any, error) {
	if _, _, err := s.find(ctx, &r.aboutExecution); err != nil {
		return nil, err
	}
	if len(r.Cause) > maxCause || len(r.Error) > maxError {
		return nil, invalid("got an error of %d and a cause of %d bytes, want at most %d and %d", len(r.Error), len(r.Cause), maxError, maxCause)
	}
	if err := s.config.Executions.Stop(ctx, r.name(), r.Cause); err != nil {
		return nil, internal(err)
	}
	return map[string]any{"stopDate": seconds(s.config.Clock.Now())}, nil
}

// find returns an execution.
func (s *StepFunctions) find(ctx context.Context, r *aboutExecution) (port.Execution, *execution, error) {
	name := r.name()
	if r.ExecutionArn != s.executionPrefix+name {
		return port.Execution{}, nil, refuse("ExecutionDoesNotExist", "execution does not exist: %s", r.ExecutionArn)
	}
	x, err := s.config.Executions.Describe(ctx, name)
	s.mu.Lock()
	known := s.records[name]
	s.mu.Unlock()
	if errors.Is(err, port.ErrNotFound) || err == nil && known == nil {
		return x, nil, refuse("ExecutionDoesNotExist", "execution does not exist: %s", s.executionPrefix+name)
	}
	if err != nil {
		return x, nil, internal(err)
	}
	return x, known, nil
}

type describeExecution struct{ aboutExecution }

func (r *describeExecution) call() (string, bool) { return r.name(), false }

func (s *StepFunctions) describe(ctx context.Context, c Call, r *describeExecution, _ Fate) (any, error) {
	x, known, err := s.find(ctx, &r.aboutExecution)
	if err != nil {
		return nil, err
	}
	now := s.config.Clock.Now()
	stale := draw(s.config.Seed, uint64(c.Number), "describe", x.Name).Float64() < s.config.Stale //nolint:gosec // a count
	s.mu.Lock()
	defer s.mu.Unlock()
	if stale && now.Sub(known.started) < s.config.Lag {
		return nil, refuse("ExecutionDoesNotExist", "execution does not exist: %s", r.ExecutionArn)
	}
	if known.full {
		x.Status, x.Error, x.Cause = port.ExecutionFailed, "States.Runtime", fullCause
	}
	if x.Status != port.ExecutionRunning && known.ended.IsZero() {
		known.ended = now
	}
	if stale && now.Sub(known.ended) < s.config.Lag {
		x = port.Execution{Status: port.ExecutionRunning}
	}
	answer := map[string]any{
		"executionArn": r.ExecutionArn, "stateMachineArn": s.machine, "name": r.name(), "input": known.input,
		"status": x.Status, "startDate": seconds(known.started),
	}
	if x.Status != port.ExecutionRunning {
		answer["stopDate"], answer["error"], answer["cause"] = seconds(known.ended), x.Error, x.Cause
	}
	return answer, nil
}

// sendTask has the fields of the three calls with a task token.
type sendTask struct{ TaskToken, Output, Error, Cause string }

func (r *sendTask) call() (string, bool) { return r.TaskToken, true }

func (s *StepFunctions) token(ctx context.Context, c Call, r *sendTask, _ Fate) (any, error) {
	executions := s.config.Executions
	var err error
	switch {
	case r.TaskToken == "" || len(r.TaskToken) > maxToken:
		return nil, invalid("got a token of %d bytes, want 1 to %d", len(r.TaskToken), maxToken)
	case c.Operation == "SendTaskHeartbeat":
		err = executions.Heartbeat(ctx, r.TaskToken)
	case c.Operation == "SendTaskFailure":
		if len(r.Cause) > maxCause || len(r.Error) > maxError {
			return nil, invalid("got an error of %d and a cause of %d bytes, want at most %d and %d", len(r.Error), len(r.Cause), maxError, maxCause)
		}
		err = executions.Fail(ctx, r.TaskToken, r.Error, r.Cause)
	case !json.Valid([]byte(r.Output)) || len(r.Output) > maxData:
		return nil, refuse("InvalidOutput", "invalid output of %d bytes", len(r.Output))
	default:
		err = executions.Succeed(ctx, r.TaskToken, json.RawMessage(r.Output))
	}
	if errors.Is(err, port.ErrTokenGone) {
		codes := []string{"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"}
		return nil, refuse(codes[c.Number%len(codes)], "the task does not wait for the token")
	}
	if err != nil {
		return nil, internal(err)
	}
	return struct{}{}, nil
}
