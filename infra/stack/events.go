package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// bus is the event bus as others refer to it.
type bus struct{ name, arn string }

// lost is the queue of what could not be handled, as others refer to it.
type lost struct {
	arn, name, url string
	// rules are the ARNs of the rules that may put something in.
	rules []string
}

// What becomes of what cannot be handled at once. The stream keeps a record for
// a day; a poison one must not hold its shard up for longer than an hour.
const (
	relayBatch   = 100
	relayRetries = 10
	relayMaxAge  = 3600
	relayWorkers = 2 // batches of one shard at once; one run's stay in order
	sweepRetries = 1
	sweepMaxAge  = 300
	lostKept     = 14 * 24 * 3600 // SQS: at most 14 days
)

// addBus makes the bus that the relay publishes to, and the queue of what got
// lost on its way.
func (h *house) addBus() {
	made := awsevents.NewCfnEventBus(h.stack, jsii.String("Bus"), &awsevents.CfnEventBusProps{
		Name: jsii.String(h.name("events")), Description: jsii.String("the events of Sortie, stage " + h.settings.Stage),
	})
	h.bus = bus{*made.Ref(), *made.AttrArn()}
	queue := awssqs.NewCfnQueue(h.stack, jsii.String("Lost"), &awssqs.CfnQueueProps{
		QueueName: jsii.String(h.name("lost")), MessageRetentionPeriod: num(lostKept), SqsManagedSseEnabled: true,
	})
	h.lost = lost{arn: *queue.AttrArn(), name: *queue.AttrQueueName(), url: *queue.Ref()}
}

// addEvents has the relay read the table's stream, and executions that ended
// badly told to the sweep. One that succeeded has ended its run before.
func (h *house) addEvents() {
	awslambda.NewCfnEventSourceMapping(h.stack, jsii.String("Stream"), &awslambda.CfnEventSourceMappingProps{
		FunctionName: h.functions["relay"].FunctionArn(), EventSourceArn: jsii.String(h.table.stream),
		StartingPosition: jsii.String("TRIM_HORIZON"), BatchSize: num(relayBatch),
		FilterCriteria: &awslambda.CfnEventSourceMapping_FilterCriteriaProperty{Filters: []any{
			&awslambda.CfnEventSourceMapping_FilterProperty{Pattern: jsii.String(schema.StreamFilter)},
		}},
		BisectBatchOnFunctionError: true, MaximumRetryAttempts: num(relayRetries), MaximumRecordAgeInSeconds: num(relayMaxAge),
		FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"), ParallelizationFactor: num(relayWorkers),
		DestinationConfig: &awslambda.CfnEventSourceMapping_DestinationConfigProperty{
			OnFailure: &awslambda.CfnEventSourceMapping_OnFailureProperty{Destination: jsii.String(h.lost.arn)},
		},
	})
	h.toSweep("Ended", "executions that ended badly", map[string]any{
		"source": []string{"aws.states"}, "detail-type": []string{"Step Functions Execution Status Change"},
		"detail": map[string]any{"status": []string{"FAILED", "TIMED_OUT", "ABORTED"}, "stateMachineArn": []string{h.machine.arn}},
	}, "")
}

// addSchedules has the sweep called each minute. A rule of EventBridge does it
// and no EventBridge Scheduler: it costs nothing, needs no role, and a minute
// needs neither a time zone nor an end. What AWS calls asynchronously goes to
// the queue when it failed; the next minute's sweep does the same work anyway.
func (h *house) addSchedules() {
	h.toSweep("EveryMinute", "the sweep, each minute", nil, "rate(1 minute)")
	awslambda.NewCfnEventInvokeConfig(h.stack, jsii.String("SweepInvoke"), &awslambda.CfnEventInvokeConfigProps{
		FunctionName: h.functions["sweep"].FunctionName(), Qualifier: jsii.String("$LATEST"),
		MaximumRetryAttempts: num(sweepRetries), MaximumEventAgeInSeconds: num(sweepMaxAge),
		DestinationConfig: &awslambda.CfnEventInvokeConfig_DestinationConfigProperty{
			OnFailure: &awslambda.CfnEventInvokeConfig_OnFailureProperty{Destination: jsii.String(h.lost.arn)},
		},
	})
}

// toSweep makes a rule of the default bus that calls the sweep, for a pattern or
// on a schedule.
func (h *house) toSweep(id, meaning string, pattern map[string]any, schedule string) {
	props := &awsevents.CfnRuleProps{
		Description: jsii.String(meaning), State: jsii.String("ENABLED"), ScheduleExpression: optional(schedule),
		Targets: []any{&awsevents.CfnRule_TargetProperty{
			Id: jsii.String("sweep"), Arn: h.functions["sweep"].FunctionArn(),
			RetryPolicy:      &awsevents.CfnRule_RetryPolicyProperty{MaximumRetryAttempts: num(sweepRetries), MaximumEventAgeInSeconds: num(sweepMaxAge)},
			DeadLetterConfig: &awsevents.CfnRule_DeadLetterConfigProperty{Arn: jsii.String(h.lost.arn)},
		}},
	}
	if pattern != nil {
		props.EventPattern = pattern
	}
	rule := awsevents.NewCfnRule(h.stack, jsii.String(id), props)
	awslambda.NewCfnPermission(h.stack, jsii.String(id+"Permission"), &awslambda.CfnPermissionProps{
		Action: jsii.String("lambda:InvokeFunction"), FunctionName: h.functions["sweep"].FunctionArn(),
		Principal: jsii.String("events.amazonaws.com"), SourceArn: rule.AttrArn(),
	})
	h.lost.rules = append(h.lost.rules, *rule.AttrArn())
}

// openLost lets the rules put what they could not deliver into the queue.
func (h *house) openLost() {
	awssqs.NewCfnQueuePolicy(h.stack, jsii.String("LostPolicy"), &awssqs.CfnQueuePolicyProps{
		Queues: jsii.Strings(h.lost.url),
		PolicyDocument: map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
			"Effect": "Allow", "Principal": map[string]any{"Service": "events.amazonaws.com"},
			"Action": "sqs:SendMessage", "Resource": h.lost.arn,
			"Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": h.lost.rules}},
		}}},
	})
}
