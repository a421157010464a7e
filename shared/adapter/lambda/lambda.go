// Package lambda invokes functions of AWS Lambda asynchronously. Lambda queues the event and
// responds before the function runs. It may deliver an event more than once, and again after an
// error of the function.
package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// maxTries is how often a call is tried. It is low because the caller waits after its commit,
// and a sweep repeats failed calls.
const maxTries = 2

// Function is a Lambda function. It is safe for concurrent use.
type Function struct {
	client *lambda.Client
	arn    string
}

// New returns the function with an ARN. It makes no call.
func New(cfg aws.Config, arn string) (*Function, error) {
	if arn == "" {
		return nil, errors.New("cannot invoke a function: its ARN is missing")
	}
	return &Function{lambda.NewFromConfig(cfg, func(o *lambda.Options) { o.RetryMaxAttempts = maxTries }), arn}, nil
}

// Invoke queues the JSON of an event. Fault: Unavailable.
func (f *Function) Invoke(ctx context.Context, event any) error {
	payload, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("cannot encode an event: %w", err)
	}
	_, err = f.client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &f.arn, InvocationType: types.InvocationTypeEvent, Payload: payload})
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the function %s cannot be invoked", f.arn)
	}
	return nil
}
