package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
)

// The limits for the retries of a failed dispatcher and for the age of its event. Sweeps call a
// dispatcher again for tasks without one.
const (
	dispatchRetries = 1
	dispatchMaxAge  = 120
)

// dispatcher returns the ARN with which functions call a dispatcher. It is built from names,
// because the variables of the function itself contain it: a dispatcher calls the next one.
func (b *builder) dispatcher() string {
	arn := b.arn("lambda", "function", b.name("dispatch"), awscdk.ArnFormat_COLON_RESOURCE_NAME)
	if b.settings.Gradual {
		arn += ":" + live
	}
	return arn
}

// addDispatch sets the limits for failed events.
func (b *builder) addDispatch() {
	b.invoked("dispatch", "DispatchInvoke", &awslambda.CfnEventInvokeConfigProps{
		MaximumRetryAttempts: num(dispatchRetries), MaximumEventAgeInSeconds: num(dispatchMaxAge),
	})
}
