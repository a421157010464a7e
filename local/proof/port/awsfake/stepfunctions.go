package awsfake

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// StateMachine is the ARN of the state machine of a StepFunctions whose configuration has no
// name.
const StateMachine = "arn:aws:states:" + Region + ":" + Account + ":stateMachine:" + defaultMachine

const defaultMachine = "run"

// MaxHistory is the maximum number of events in the history of an execution. An execution that
// exceeds it fails (AWS Step Functions Developer Guide, "Quotas").
const MaxHistory = 25_000

// Quota is the token bucket for the calls of one operation.
type Quota struct {
	// Bucket is the bucket size in calls, Refill the refill rate in calls per second.
	Bucket, Refill float64
}

// Quotas returns the quotas of most regions (AWS Step Functions Developer Guide, "Quotas").
// us-east-1, us-west-2 and eu-west-1 have higher ones.
func Quotas() map[string]Quota {
	return map[string]Quota{
		"StartExecution": {800, 150}, "StopExecution": {500, 25}, "DescribeExecution": {250, 10},
		"SendTaskSuccess": {1000, 300}, "SendTaskFailure": {1000, 300}, "SendTaskHeartbeat": {1000, 300},
	}
}

// StepFunctionsConfig configures a StepFunctions.
type StepFunctionsConfig struct {
	// Clock is required. It also times the delays between the SDK's retries.
	Clock clock.Clock
	// Executions run the state machine. They must keep their data when a process of Sortie
	// ends, as the service does. It is required.
	Executions port.Executions
	// Name is the name of the state machine; empty is the name in the constant StateMachine.
	Name string
	// Definition is the state machine in Amazon States Language. The number of history events
	// of each state is computed from it; nil disables the count.
	Definition []byte
	// MaxHistory replaces the constant if it is not 0.
	MaxHistory int
	// Quotas limit the calls of operations. An operation that is not in the map has no limit.
	Quotas map[string]Quota
	// Seed determines which descriptions are stale. Stale is their fraction, from 0 to 1. Lag
	// is the time after a start or end in which a description can be stale.
	Seed  uint64
	Stale float64
	Lag   time.Duration
	// Plan decides the fates of calls.
	Plan Plan
}

// StepFunctions is an in-process AWS Step Functions with one state machine, whose executions
// another implementation runs. It adds the parts of the service that are not in
// port.Executions: names, errors, quotas, the limit of the history, and stale descriptions. It
// is safe for concurrent use.
//
// It implements StartExecution, StopExecution, DescribeExecution, SendTaskSuccess,
// SendTaskFailure and SendTaskHeartbeat.
type StepFunctions struct {
	service
	config StepFunctionsConfig
	// machine is the ARN of the state machine. executionPrefix is the prefix of the ARNs of its
	// executions.
	machine, executionPrefix string
	// events maps each state to the number of history events of one visit.
	events map[string]int

	starting sync.Mutex
	mu       sync.Mutex
	records  map[string]*execution
	buckets  map[string]*bucket
}

// bucket is the token bucket of an operation: the number of calls that were allowed at a time.
type bucket struct {
	calls float64
	at    time.Time
}

// NewStepFunctions returns a service without executions. It returns an error for a malformed
// definition.
func NewStepFunctions(c StepFunctionsConfig) (*StepFunctions, error) {
	if c.MaxHistory == 0 {
		c.MaxHistory = MaxHistory
	}
	events, err := historyOf(c.Definition)
	if err != nil {
		return nil, err
	}
	s := &StepFunctions{config: c, events: events, records: map[string]*execution{}, buckets: map[string]*bucket{}}
	name := cmp.Or(c.Name, defaultMachine)
	s.machine = "arn:aws:states:" + Region + ":" + Account + ":stateMachine:" + name
	s.executionPrefix = "arn:aws:states:" + Region + ":" + Account + ":execution:" + name + ":"
	s.service = service{namespace: "com.amazonaws.swf.service.v2.model", plan: c.Plan, handle: s.handle, counts: map[[2]string]int{}}
	return s, nil
}

// AWS returns the configuration of clients of the service. The delays between the SDK's retries
// use the clock of the fake.
func (s *StepFunctions) AWS() aws.Config {
	cfg := configuration("http://states.invalid", s)
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(try int, _ error) (time.Duration, error) {
				return 0, clock.Sleep(context.Background(), s.config.Clock, min(100*time.Millisecond<<try, 20*time.Second))
			})
		})
	}
	return cfg
}

func (s *StepFunctions) handle(operation string, body []byte) (Call, answer, error) {
	c, do, err := s.operation(operation, body)
	return c, func(ctx context.Context, c Call, fate Fate) (any, error) {
		if !s.admit(operation) || fate == Throttled {
			return nil, refuse("ThrottlingException", "Rate exceeded")
		}
		return do(ctx, c, fate)
	}, err
}

func (s *StepFunctions) operation(operation string, body []byte) (Call, answer, error) {
	switch operation {
	case "StartExecution":
		return bind(operation, body, s.start)
	case "StopExecution":
		return bind(operation, body, s.stop)
	case "DescribeExecution":
		return bind(operation, body, s.describe)
	case "SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat":
		return bind(operation, body, s.token)
	}
	return Call{}, nil, refuse("UnknownOperationException", "the fake has no operation %s", operation)
}

// admit takes one call from the bucket of the operation, and reports whether it had one.
func (s *StepFunctions) admit(operation string) bool {
	quota, limited := s.config.Quotas[operation]
	if !limited {
		return true
	}
	now := s.config.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[operation]
	if b == nil {
		b = &bucket{quota.Bucket, now}
		s.buckets[operation] = b
	}
	b.calls = min(quota.Bucket, b.calls+max(now.Sub(b.at).Seconds(), 0)*quota.Refill)
	b.at = now
	if b.calls < 1 {
		return false
	}
	b.calls--
	return true
}

// historyOf returns the number of history events of one visit of each state without errors. A
// state is entered and exited. A task is also scheduled, started, submitted if it waits for a
// token, and ended.
func historyOf(definition []byte) (map[string]int, error) {
	if definition == nil {
		return nil, nil //nolint:nilnil // counts nothing
	}
	var machine struct {
		States map[string]struct{ Type, Resource string }
	}
	if err := json.Unmarshal(definition, &machine); err != nil {
		return nil, err
	}
	events := map[string]int{}
	for name, state := range machine.States {
		switch {
		case waitsForToken(state.Resource):
			events[name] = 6
		case state.Type == "Task":
			events[name] = 5
		default:
			events[name] = 2
		}
	}
	return events, nil
}
