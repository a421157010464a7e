package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// bus identifies the event bus for other resources.
type bus struct{ name, arn string }

// deadLetters identifies the dead-letter queue for other resources.
type deadLetters struct {
	arn, name, url string
	// rules are the ARNs of the rules that may send to the queue.
	rules []string
}

// The limits for retries of records and events. The stream keeps a record for a day, and the
// relay retries for as long. The relay sets aside each change that it cannot publish, so a
// record that always fails does not block its shard.
const (
	relayBatch        = 100
	relayRetries      = -1 // until relayMaxAge
	relayMaxAge       = 24 * 3600
	relayWorkers      = 2 // concurrent batches per shard; the records of one run stay in order
	sweepRetries      = 1
	sweepMaxAge       = 300
	deadLetterSeconds = 14 * 24 * 3600 // SQS: at most 14 days
)

// addBus adds the event bus and the dead-letter queue.
func (b *builder) addBus() {
	made := awsevents.NewCfnEventBus(b.stack, jsii.String("Bus"), &awsevents.CfnEventBusProps{
		Name: jsii.String(b.name("events")), Description: jsii.String("the events of Sortie, stage " + b.settings.Stage),
	})
	b.bus = bus{*made.Ref(), *made.AttrArn()}
	queue := awssqs.NewCfnQueue(b.stack, jsii.String("DeadLetters"), &awssqs.CfnQueueProps{
		QueueName: jsii.String(b.name("dead-letters")), MessageRetentionPeriod: num(deadLetterSeconds), SqsManagedSseEnabled: true,
	})
	b.dead = deadLetters{arn: *queue.AttrArn(), name: *queue.AttrQueueName(), url: *queue.Ref()}
}

// tableStream is the id of the mapping of the table's stream. It must not change: AWS does not
// permit a second mapping with the same function, so a mapping with another id could not be
// deployed.
const tableStream = "Stream"

// addEvents connects the table's stream to the relay, and failed executions to the sweep. An
// execution that succeeded has already ended its run.
func (b *builder) addEvents() {
	awslambda.NewCfnEventSourceMapping(b.stack, jsii.String(tableStream), &awslambda.CfnEventSourceMappingProps{
		FunctionName: b.callable("relay").FunctionArn(), EventSourceArn: jsii.String(b.table.stream),
		StartingPosition: jsii.String("TRIM_HORIZON"), BatchSize: num(relayBatch),
		FilterCriteria: &awslambda.CfnEventSourceMapping_FilterCriteriaProperty{Filters: []any{
			&awslambda.CfnEventSourceMapping_FilterProperty{Pattern: jsii.String(schema.StreamFilter)},
		}},
		BisectBatchOnFunctionError: true, MaximumRetryAttempts: num(relayRetries), MaximumRecordAgeInSeconds: num(relayMaxAge),
		FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"), ParallelizationFactor: num(relayWorkers),
		DestinationConfig: &awslambda.CfnEventSourceMapping_DestinationConfigProperty{
			OnFailure: &awslambda.CfnEventSourceMapping_OnFailureProperty{Destination: jsii.String(b.dead.arn)},
		},
	})
	b.toSweep("Ended", "executions that failed, timed out or were aborted", map[string]any{
		"source": []string{"aws.states"}, "detail-type": []string{"Step Functions Execution Status Change"},
		"detail": map[string]any{"status": []string{"FAILED", "TIMED_OUT", "ABORTED"}, "stateMachineArn": []string{b.machine.arn}},
	}, "")
}

// addSchedules adds the schedules that invoke the sweep and the relay each minute. It uses
// rules instead of EventBridge Scheduler, because a rule is free and needs no role. A failed
// invocation is not kept, because the sweep of the next minute repeats its work. While a secret
// is missing, the alarm SweepFails is raised; it ends with the cause. An event about an ended
// execution is not kept either: the sweep finds the execution when it is overdue.
func (b *builder) addSchedules() {
	b.toSweep("EveryMinute", "the sweep, each minute", nil, "rate(1 minute)")
	b.invoked("sweep", "SweepInvoke", &awslambda.CfnEventInvokeConfigProps{
		MaximumRetryAttempts: num(sweepRetries), MaximumEventAgeInSeconds: num(sweepMaxAge),
	})
	b.toFunction("relay", "Redrive", "the relay, each minute, for checkpoints and for what was not published", nil, "rate(1 minute)", sweepRetries)
}

// invoked sets the retries and the destination for failed asynchronous calls of a function.
func (b *builder) invoked(function, id string, props *awslambda.CfnEventInvokeConfigProps) {
	props.FunctionName, props.Qualifier = b.functions[function].FunctionName(), jsii.String("$LATEST")
	alias := b.aliases[function]
	if alias != nil {
		props.Qualifier = jsii.String(live)
	}
	made := awslambda.NewCfnEventInvokeConfig(b.stack, jsii.String(id), props)
	if alias != nil { // the template refers to it by name only
		made.Node().AddDependency(alias)
	}
}

// toSweep adds a rule of the default bus that invokes the sweep, for a pattern or on a
// schedule.
func (b *builder) toSweep(id, meaning string, pattern map[string]any, schedule string) {
	b.toFunction("sweep", id, meaning, pattern, schedule, sweepRetries)
}

// toFunction adds a rule of the default bus that invokes a function.
func (b *builder) toFunction(function, id, meaning string, pattern map[string]any, schedule string, retries int) {
	props := &awsevents.CfnRuleProps{
		Description: jsii.String(meaning), State: jsii.String("ENABLED"), ScheduleExpression: optional(schedule),
		Targets: []any{&awsevents.CfnRule_TargetProperty{
			Id: jsii.String(function), Arn: b.callable(function).FunctionArn(),
			RetryPolicy:      &awsevents.CfnRule_RetryPolicyProperty{MaximumRetryAttempts: num(retries), MaximumEventAgeInSeconds: num(sweepMaxAge)},
			DeadLetterConfig: &awsevents.CfnRule_DeadLetterConfigProperty{Arn: jsii.String(b.dead.arn)},
		}},
	}
	if pattern != nil {
		props.EventPattern = pattern
	}
	rule := awsevents.NewCfnRule(b.stack, jsii.String(id), props)
	awslambda.NewCfnPermission(b.stack, jsii.String(id+"Permission"), &awslambda.CfnPermissionProps{
		Action: jsii.String("lambda:InvokeFunction"), FunctionName: b.callable(function).FunctionArn(),
		Principal: jsii.String("events.amazonaws.com"), SourceArn: rule.AttrArn(),
	})
	b.dead.rules = append(b.dead.rules, *rule.AttrArn())
}

// allowDeadLetters permits the rules to send undelivered events to the queue.
func (b *builder) allowDeadLetters() {
	awssqs.NewCfnQueuePolicy(b.stack, jsii.String("DeadLettersPolicy"), &awssqs.CfnQueuePolicyProps{
		Queues: jsii.Strings(b.dead.url),
		PolicyDocument: map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
			"Effect": "Allow", "Principal": map[string]any{"Service": "events.amazonaws.com"},
			"Action": "sqs:SendMessage", "Resource": b.dead.arn,
			"Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": b.dead.rules}},
		}}},
	})
}
