package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// deliveries identifies the queue of webhooks for other resources.
type deliveries struct{ arn, name, url string }

// The settings of the queue of webhooks. After its last receive a message goes to the
// dead-letter queue. The sweep then enqueues its webhook again when it is due.
const (
	deliverBatch    = 10
	deliverReceives = 5
	// deliverHidden is the visibility timeout. It is six times the timeout of the function, as
	// AWS advises: the function may be throttled after it has received the messages.
	deliverHidden = 6 * deliverTimeout
	// deliverConcurrency is the maximum number of concurrent calls of the function by the
	// queue. Without a limit, slow receivers could use all executions of the account.
	deliverConcurrency = 20
	deliverRetention   = 24 * 3600 // an older message has no purpose: sweeps have enqueued its webhook
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

// addDeliver connects the queue of webhooks to the function deliver. The function returns the
// messages that failed.
func (b *builder) addDeliver() {
	awslambda.NewCfnEventSourceMapping(b.stack, jsii.String("Delivering"), &awslambda.CfnEventSourceMappingProps{
		FunctionName: b.callable("deliver").FunctionArn(), EventSourceArn: jsii.String(b.deliveries.arn),
		BatchSize: num(deliverBatch), FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"),
		ScalingConfig: &awslambda.CfnEventSourceMapping_ScalingConfigProperty{MaximumConcurrency: num(deliverConcurrency)},
	})
}
