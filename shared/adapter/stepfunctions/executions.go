// Package stepfunctions runs executions on AWS Step Functions.
//
// It adds promises of the port to the service. Starting a name again with the same input
// succeeds even after the execution's end, when the service reports that the name exists.
// Names, inputs and outputs are checked before the call, with the messages of the local engine.
//
// The ARN of an execution is derived from the ARN of the state machine and the execution's
// name. The state machine may be given by the ARN of a version or an alias, which then runs the
// executions.
package stepfunctions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// maxTries is how often the SDK tries one call before it returns throttling,
// with growing pauses: about half a minute, or until ctx ends.
const maxTries = 8

// Executions implements port.Executions with one state machine. It is safe for concurrent use.
type Executions struct {
	client *sfn.Client
	// machine is the state machine's ARN, prefix the common part of its
	// executions' ARNs.
	machine, prefix string
}

var _ port.Executions = (*Executions)(nil)

// New returns Executions of the state machine with this ARN. It makes no call.
func New(cfg aws.Config, stateMachine string) (*Executions, error) {
	prefix, err := executionPrefix(stateMachine)
	if err != nil {
		return nil, fmt.Errorf("cannot use the state machine: %w", err)
	}
	client := sfn.NewFromConfig(cfg, func(o *sfn.Options) { o.RetryMaxAttempts = maxTries })
	return &Executions{client, stateMachine, prefix}, nil
}

// executionPrefix returns arn:P:states:R:A:execution:NAME: for
// arn:P:states:R:A:stateMachine:NAME, with or without a version or alias.
func executionPrefix(stateMachine string) (string, error) {
	parts := strings.Split(stateMachine, ":")
	if len(parts) != 7 && len(parts) != 8 || parts[0] != "arn" || parts[2] != "states" || parts[5] != "stateMachine" || parts[6] == "" {
		return "", fmt.Errorf("%q is not the ARN of one", stateMachine)
	}
	parts[5] = "execution"
	return strings.Join(parts[:7], ":") + ":", nil
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// Start implements port.Executions.
func (e *Executions) Start(ctx context.Context, name string, input json.RawMessage) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("cannot start the execution: %q is not 1 to 80 letters, digits, '-' and '_'", name)
	}
	if !object(input) {
		return fmt.Errorf("cannot start the execution %s: its input is no JSON object", name)
	}
	_, err := e.client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &e.machine, Name: &name, Input: aws.String(string(input)),
	})
	if _, taken := errors.AsType[*types.ExecutionAlreadyExists](err); taken {
		return e.startedBefore(ctx, name, input)
	}
	return unavailable(err, "start an execution")
}

// startedBefore returns nil if the execution with the name has the same input.
func (e *Executions) startedBefore(ctx context.Context, name string, input json.RawMessage) error {
	x, err := e.client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: e.arn(name)})
	if err != nil {
		return unavailable(err, "describe the execution that has the name")
	}
	if !same(input, json.RawMessage(aws.ToString(x.Input))) {
		return fmt.Errorf("cannot start the execution %s: the name belongs to another execution", name)
	}
	return nil
}

// Succeed implements port.Executions.
func (e *Executions) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	if !object(output) {
		return errors.New("cannot complete the token: its output is no JSON object")
	}
	_, err := e.client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String(string(output))})
	return named(err, "complete a token")
}

// Fail implements port.Executions.
func (e *Executions) Fail(ctx context.Context, token, name, cause string) error {
	if strings.HasPrefix(name, "States.") {
		return fmt.Errorf("cannot fail the token: the error %s is one of Step Functions itself", name)
	}
	_, err := e.client.SendTaskFailure(ctx, &sfn.SendTaskFailureInput{TaskToken: &token, Error: &name, Cause: &cause})
	return named(err, "fail a token")
}

// once disables the SDK's retries of one call.
func once(o *sfn.Options) { o.RetryMaxAttempts = 1 }

// Heartbeat implements port.Executions. It is tried once, because a worker's request waits for
// it and the next heartbeat has the same effect.
func (e *Executions) Heartbeat(ctx context.Context, token string) error {
	_, err := e.client.SendTaskHeartbeat(ctx, &sfn.SendTaskHeartbeatInput{TaskToken: &token}, once)
	return named(err, "take a heartbeat")
}

// Stop implements port.Executions.
func (e *Executions) Stop(ctx context.Context, name, cause string) error {
	_, err := e.client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: e.arn(name), Cause: &cause})
	if _, unknown := errors.AsType[*types.ExecutionDoesNotExist](err); unknown {
		return nil
	}
	return unavailable(err, "stop an execution")
}

// Describe implements port.Executions. Transitions is 0: the service does not
// report it.
func (e *Executions) Describe(ctx context.Context, name string) (port.Execution, error) {
	x, err := e.client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: e.arn(name)})
	if _, unknown := errors.AsType[*types.ExecutionDoesNotExist](err); unknown {
		return port.Execution{}, port.ErrNotFound
	}
	if err != nil {
		return port.Execution{}, unavailable(err, "describe an execution")
	}
	status := port.ExecutionStatus(x.Status)
	if x.Status == types.ExecutionStatusPendingRedrive {
		status = port.ExecutionRunning // a redrive is requested
	}
	return port.Execution{
		Name: name, Status: status, Error: aws.ToString(x.Error), Cause: aws.ToString(x.Cause),
	}, nil
}

func (e *Executions) arn(name string) *string { return aws.String(e.prefix + name) }

// named converts the errors of a call about a token.
func named(err error, doing string) error {
	_, unknown := errors.AsType[*types.TaskDoesNotExist](err)
	_, late := errors.AsType[*types.TaskTimedOut](err)
	_, invalid := errors.AsType[*types.InvalidToken](err)
	if unknown || late || invalid {
		return port.ErrTokenGone
	}
	return unavailable(err, doing)
}

// unavailable converts every other error. doing completes "Step Functions cannot ...".
func unavailable(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.Unavailable, "Step Functions cannot %s now", doing)
}

func object(text json.RawMessage) bool {
	text = bytes.TrimSpace(text)
	return json.Valid(text) && text[0] == '{'
}

// same reports whether two texts are equal JSON.
func same(one, other json.RawMessage) bool {
	decode := func(text json.RawMessage) (v any, err error) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		return v, d.Decode(&v)
	}
	a, failed := decode(one)
	b, err := decode(other)
	return failed == nil && err == nil && reflect.DeepEqual(a, b)
}
