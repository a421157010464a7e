package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
)

// Retries of a shift that has failed, and the age of its event: sweeps call a dispatcher
// again for tasks without one.
const (
	dispatchRetries = 1
	dispatchMaxAge  = 120
)

// dispatcher is the ARN that calls a dispatcher. It is named, because the function's own
// variables contain it: a shift calls the next one.
func (b *builder) dispatcher() string {
	arn := b.arn("lambda", "function", b.name("dispatch"), awscdk.ArnFormat_COLON_RESOURCE_NAME)
	if b.settings.Gradual {
		arn += ":" + live
	}
	return arn
}

// addDispatch sets what happens to events that fail.
func (b *builder) addDispatch() {
	b.invoked("dispatch", "DispatchInvoke", &awslambda.CfnEventInvokeConfigProps{
		MaximumRetryAttempts: num(dispatchRetries), MaximumEventAgeInSeconds: num(dispatchMaxAge),
	})
}
