package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/consumed"
	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// patience limits how long a request that failed temporarily is retried. The deadline of its
// context may end the retries earlier.
const patience = 20 * time.Second

var pauses = retry.Backoff{First: 20 * time.Millisecond, Most: time.Second, Multiplier: 2}

type method[In, Out any] func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// call sends a request and retries it after temporary failures.
func call[In, Out any](ctx context.Context, s *Store, do method[In, Out], in *In) (*Out, error) {
	until := s.now().Add(patience)
	for n := 0; ; n++ {
		out, err := do(ctx, in)
		if err == nil {
			s.count(out)
			return out, nil
		}
		pause := s.jitter(pauses.Delay(n))
		if !passing(err) || s.now().Add(pause).After(until) || s.pause(ctx, pause) != nil {
			return nil, err
		}
	}
}

var passingFaults = awsretry.IsErrorRetryables(awsretry.DefaultRetryables)

// passing reports whether the same request may succeed soon, as after throttling, transaction
// conflicts and broken connections.
func passing(err error) bool {
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		waits := false
		for _, reason := range cancelled.CancellationReasons {
			switch aws.ToString(reason.Code) {
			case "", "None":
			case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
				waits = true
			default:
				return false
			}
		}
		return waits
	}
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
		return true
	}
	if _, ok := errors.AsType[*types.InternalServerError](err); ok {
		return true
	}
	return passingFaults.IsErrorRetryable(err).Bool()
}

// refused returns the reason for each part of a refused write, with the stored
// item. It returns nil for any other error.
func refused(err error) []types.CancellationReason {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return []types.CancellationReason{{Code: aws.String(conditionFailed), Item: failed.Item}}
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, reason := range cancelled.CancellationReasons {
			if aws.ToString(reason.Code) == conditionFailed {
				return cancelled.CancellationReasons
			}
		}
	}
	return nil
}

const conditionFailed = "ConditionalCheckFailed"

func failed(reason types.CancellationReason) bool {
	return aws.ToString(reason.Code) == conditionFailed
}

// wrap adds the operation and the id to an error. It returns the errors of the port unchanged.
// An error of the SDK becomes a fault.Unavailable.
func wrap(err error, doing, id string) error {
	if err == nil || errors.Is(err, port.ErrConflict) || errors.Is(err, port.ErrNoSlot) || errors.Is(err, port.ErrNoBudget) ||
		errors.Is(err, port.ErrKeyTaken) || errors.Is(err, port.ErrNotFound) {
		return err
	}
	if _, ok := errors.AsType[*fault.Fault](err); !ok {
		err = fault.Wrap(err, fault.Unavailable, "the database does not respond")
	}
	return fmt.Errorf("cannot %s %s: %w", doing, id, err)
}

// returnConsumed returns whether responses must report the consumed capacity.
func (s *Store) returnConsumed() types.ReturnConsumedCapacity {
	if s.config.Consumed == nil {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityTotal
}

// count reports the consumed capacity of a response to Config.Consumed.
func (s *Store) count(out any) {
	if s.config.Consumed != nil {
		s.config.Consumed(consumed.By(out))
	}
}
