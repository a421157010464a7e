package stack

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"

	"github.com/sortie-dev/sortie/functions/canary"
)

// canarySecret is the kind of the canary's secret. Only a stage with a canary contains it.
const canarySecret = "canary"

// exportsGrant returns the grant of a function that exports as a client.
func (b *builder) exportsGrant() grant {
	if b.settings.CanaryPI == "" {
		return grant{}
	}
	return b.secretGrant(canarySecret, map[string]string{"SORTIE_CANARY_PI": b.settings.CanaryPI})
}

// addCanary adds the schedule of the canary, if the stage has one. A failed invocation is not
// retried, because its error raises the alarm.
func (b *builder) addCanary() {
	if b.settings.CanaryPI == "" {
		return
	}
	b.toFunction("canary", "EveryQuarter", "the canary, each 15 minutes", nil, fmt.Sprintf("rate(%d minutes)", int(canary.Interval.Minutes())), 0)
	b.invoked("canary", "CanaryInvoke", &awslambda.CfnEventInvokeConfigProps{MaximumRetryAttempts: num(0)})
}
