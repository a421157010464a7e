package stack

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"

	"github.com/sortie-dev/sortie/functions/canary"
)

// canarySecret is the kind of the canary's secret, which only a stage with a canary has.
const canarySecret = "canary"

// exportsGrant is what a function needs to export as a client.
func (b *builder) exportsGrant() grant {
	if b.settings.CanaryPI == "" {
		return grant{}
	}
	return b.secretGrant(canarySecret, map[string]string{"SORTIE_CANARY_PI": b.settings.CanaryPI})
}

// addCanary invokes the canary, if the stage has one. A failed invocation is not retried:
// its error is the alarm.
func (b *builder) addCanary() {
	if b.settings.CanaryPI == "" {
		return
	}
	b.toFunction("canary", "EveryQuarter", "the canary, each 15 minutes", nil, fmt.Sprintf("rate(%d minutes)", int(canary.Interval.Minutes())), 0)
	b.invoked("canary", "CanaryInvoke", &awslambda.CfnEventInvokeConfigProps{MaximumRetryAttempts: num(0)})
}
