package stage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// pollInterval is the interval of polls for operations that take minutes.
const pollInterval = 5 * time.Second

// entrance is the function that accepts new runs.
const entrance = "export"

// Drain makes the API refuse new runs with 503 until Open. Everything else continues to work. A
// deployment does not end the drain.
func (s *Stage) Drain(ctx context.Context) error {
	_, err := lambda.NewFromConfig(s.cfg).PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{
		FunctionName: s.function(entrance), ReservedConcurrentExecutions: aws.Int32(0),
	})
	if err != nil {
		return fmt.Errorf("cannot close %s: %w", *s.function(entrance), err)
	}
	return nil
}

// Open makes the API accept new runs again, with the concurrency that the stage's settings
// reserve.
func (s *Stage) Open(ctx context.Context) error {
	client := lambda.NewFromConfig(s.cfg)
	var err error
	if reserved, ok := s.reserved(entrance); ok {
		_, err = client.PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{
			FunctionName: s.function(entrance), ReservedConcurrentExecutions: &reserved,
		})
	} else {
		_, err = client.DeleteFunctionConcurrency(ctx, &lambda.DeleteFunctionConcurrencyInput{FunctionName: s.function(entrance)})
	}
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", *s.function(entrance), err)
	}
	return nil
}

// Running returns the number of running executions, at most 1,000.
func (s *Stage) Running(ctx context.Context) (int, error) {
	machine, err := s.output("StateMachineArn")
	if err != nil {
		return 0, err
	}
	list, err := sfn.NewFromConfig(s.cfg).ListExecutions(ctx, &sfn.ListExecutionsInput{
		StateMachineArn: &machine, StatusFilter: types.ExecutionStatusRunning, MaxResults: 1000,
	})
	if err != nil {
		return 0, fmt.Errorf("cannot list the executions: %w", err)
	}
	return len(list.Executions), nil
}

// AwaitIdle waits until no execution is running. It calls say with the number of running
// executions whenever that changes.
func (s *Stage) AwaitIdle(ctx context.Context, say func(running int)) error {
	for last := -1; ; {
		running, err := s.Running(ctx)
		if err != nil || running == 0 {
			return err
		}
		if running != last {
			say(running)
			last = running
		}
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
}

func (s *Stage) function(name string) *string { return aws.String("sortie-" + s.Name + "-" + name) }

// reserved returns the concurrency that the deployed template reserves for a function. It
// returns false without a reservation.
func (s *Stage) reserved(name string) (int32, bool) {
	f := s.Template.Function(name)
	if f == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(f.Text("ReservedConcurrentExecutions"), 10, 32)
	return int32(n), err == nil
}
