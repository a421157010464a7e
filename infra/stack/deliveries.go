package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// deliveries is how other resources refer to the queue of webhooks.
type deliveries struct{ arn, name, url string }

// The queue of webhooks. A message that is received for the last time goes to the
// dead-letter queue: the sweep queues its webhook again when it is due.
const (
	deliverBatch    = 10
	deliverReceives = 5
	// deliverHidden is six times the function's timeout, as AWS advises: the function may
	// be throttled after it got the messages.
	deliverHidden = 6 * deliverTimeout
	// deliverConcurrency is how many calls of the function the queue makes at once. Without a
	// limit, receivers that are slow could take all executions of the account.
	deliverConcurrency = 20
	deliverRetention   = 24 * 3600 // an older message has no purpose: sweeps have queued its webhook
)

// addDeliveries adds the queue of webhooks.
func (b *builder) addDeliveries() {
	made := awssqs.NewCfnQueue(b.stack, jsii.String("Deliveries"), &awssqs.CfnQueueProps{
		QueueName: jsii.String(b.name("deliveries")), MessageRetentionPeriod: num(deliverRetention), SqsManagedSseEnabled: true,
		VisibilityTimeout: num(deliverHidden),
		RedrivePolicy:     map[string]any{"deadLetterTargetArn": b.dead.arn, "maxReceiveCount": deliverReceives},
	})
	b.deliveries = deliveries{arn: *made.AttrArn(), name: *made.AttrQueueName(), url: *made.Ref()}
}

// addDeliver connects the queue of webhooks to the function deliver, which names the
// messages that failed.
func (b *builder) addDeliver() {
	awslambda.NewCfnEventSourceMapping(b.stack, jsii.String("Delivering"), &awslambda.CfnEventSourceMappingProps{
		FunctionName: b.callable("deliver").FunctionArn(), EventSourceArn: jsii.String(b.deliveries.arn),
		BatchSize: num(deliverBatch), FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"),
		ScalingConfig: &awslambda.CfnEventSourceMapping_ScalingConfigProperty{MaximumConcurrency: num(deliverConcurrency)},
	})
}
