package stack

import (
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
)

// metric is a metric of AWS over five minutes.
type metric struct {
	namespace, name, statistic string
	dimensions                 map[string]string
}

// alarm is one alarm. Each metric of an alarm costs $0.10 a month, so one alarm sums several
// functions. Their logs show which function failed.
type alarm struct {
	id      string
	metrics []metric // summed
	// The alarm is raised if the sum exceeds above in this number of consecutive periods of
	// five minutes.
	above   float64
	periods int
	// absent raises the alarm if the sum is less than 1 or missing, and ignores above.
	absent bool
	// meaning and action form the description.
	meaning, action string
}

// fiveMinutes is the period of an alarm in seconds.
const fiveMinutes = 300

// alarms returns the alarms for the failures that need attention.
func (b *builder) alarms(api awsapigateway.RestApi) []alarm {
	lambda := func(metricName, statistic string, names ...string) []metric {
		var all []metric
		for _, name := range names {
			all = append(all, metric{"AWS/Lambda", metricName, statistic, map[string]string{"FunctionName": b.name(name)}})
		}
		return all
	}
	machine := func(names ...string) []metric {
		var all []metric
		for _, name := range names {
			all = append(all, metric{"AWS/States", name, "Sum", map[string]string{"StateMachineArn": b.machine.arn}})
		}
		return all
	}
	all := []alarm{
		{
			id: "ApiFails", above: 0, periods: 2,
			metrics: []metric{{"AWS/ApiGateway", "5XXError", "Sum", map[string]string{"ApiName": *api.RestApiName(), "Stage": b.settings.Stage}}},
			meaning: "the API returns 5xx: a front door fails, times out or is throttled",
			action:  "find the requests in the access log; their functionRequestId is the request_id in the function's log",
		},
		{
			id: "StepsFail", above: 0, periods: 2, metrics: lambda("Errors", "Sum", named(step)...),
			meaning: "step functions fail; the state machine retries for a day, so runs are delayed",
			action:  "read the logs of the steps; roll back if a deployment is the cause",
		},
		{
			id: "SweepFails", above: 0, periods: 3, metrics: lambda("Errors", "Sum", "sweep"),
			meaning: "the sweep has failed for 15 minutes: lost workers and machines are not found",
			action:  "its log names each failed part. If machines have no record, the table was emptied or restored: restore it, or run sortie stage claim",
		},
		{
			id: "SweepStopped", absent: true, periods: 1, metrics: lambda("Invocations", "Sum", "sweep"),
			meaning: "the sweep was not invoked for five minutes",
			action:  "check the rule EveryMinute and the account's unused concurrency",
		},
		{
			id: "RelayFails", above: 0, periods: 2, metrics: lambda("Errors", "Sum", "relay"),
			meaning: "the relay fails: events are published late",
			action:  "read its log; it retries for a day and then sets events aside for sortie redrive",
		},
		{
			id: "RelayLate", above: 60_000, periods: 2, metrics: lambda("IteratorAge", "Maximum", "relay"),
			meaning: "events wait in the table's stream for more than a minute; it keeps them for a day",
			action:  "look for throttling, failures of the relay, and a record that always fails",
		},
		{
			id: "DeadLetters", above: 0, periods: 1,
			metrics: []metric{{"AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", map[string]string{"QueueName": b.dead.name}}},
			meaning: "the dead-letter queue has batches of the stream, events for the sweep, wake-ups of jobs, or webhooks",
			action:  "read the messages and delete them: the records of a batch are in the table, the sweep fires the job of a wake-up, and a webhook is queued again when it is due",
		},
		{
			id: "DeliveriesLate", above: 1800, periods: 2,
			metrics: []metric{{"AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", map[string]string{"QueueName": b.deliveries.name}}},
			meaning: "webhooks have waited for half an hour; a message may be delayed by 15 minutes",
			action:  "look for throttling and in the log of deliver: each ten webhooks with something to do need a concurrent execution",
		},
		{
			id: "Throttled", above: 0, periods: 2, metrics: []metric{{"AWS/Lambda", "Throttles", "Sum", nil}},
			meaning: "the functions of this account and region use all of its concurrency",
			action:  "raise the quota \"Concurrent executions\"; reserve concurrency for callback",
		},
		{
			// The state machine has no TimeoutSeconds, so no execution times out.
			id: "ExecutionsEnd", above: 0, periods: 1, metrics: machine("ExecutionsFailed"),
			meaning: "executions failed; the sweep restarts each once",
			action:  "read the state machine's log, which has the state and the error",
		},
		{
			id: "ExecutionsThrottled", above: 0, periods: 3, metrics: machine("ExecutionThrottled"),
			meaning: "Step Functions throttles state transitions: runs are delayed",
			action:  "raise the quota of state transitions, or admit fewer runs at once",
		},
		{
			// There is no metric for reads and for each index, because each would cost as much.
			// If they are throttled, the sweep, the relay or the API fails, and these have
			// their own alarms.
			id: "TableThrottled", above: 0, periods: 2,
			metrics: []metric{{"AWS/DynamoDB", "WriteThrottleEvents", "Sum", map[string]string{"TableName": b.table.name}}},
			meaning: "DynamoDB throttles writes: the load grew too fast, or one partition key is too hot",
			action:  "wait half an hour; if it continues, find the key with Contributor Insights",
		},
	}
	if b.settings.CanaryPI != "" {
		all = append(all, alarm{
			id: "CanaryFails", above: 0, periods: 1, metrics: lambda("Errors", "Sum", "canary"),
			meaning: "the canary's export failed, took longer than 15 minutes, or could not be downloaded",
			action:  "its log says which; follow the task in its log with sortie events TASK",
		})
	}
	return all
}

// addAlarms adds the alarms and their topic. The topic is not encrypted with a key: CloudWatch
// cannot publish with SNS's own key, and alarms contain no secrets.
func (b *builder) addAlarms(api awsapigateway.RestApi) {
	topic := awssns.NewCfnTopic(b.stack, jsii.String("Alarms"), &awssns.CfnTopicProps{TopicName: jsii.String(b.name("alarms"))})
	if b.settings.AlarmEmail != "" {
		awssns.NewCfnSubscription(b.stack, jsii.String("AlarmsMail"), &awssns.CfnSubscriptionProps{
			TopicArn: topic.Ref(), Protocol: jsii.String("email"), Endpoint: jsii.String(b.settings.AlarmEmail),
		})
	}
	b.topic = *topic.Ref()
	b.result("AlarmTopic", b.topic, "the topic that alarms are published to")
	for _, a := range b.alarms(api) {
		b.addAlarm(a, topic)
	}
}

func (b *builder) addAlarm(a alarm, topic awssns.CfnTopic) {
	props := &awscloudwatch.CfnAlarmProps{
		AlarmName: jsii.String(b.name(a.id)), AlarmDescription: jsii.String(a.meaning + ". What to do: " + a.action + "."),
		AlarmActions: &[]any{topic.Ref()}, OkActions: &[]any{topic.Ref()},
		EvaluationPeriods: num(a.periods), Threshold: jsii.Number(a.above),
		ComparisonOperator: jsii.String("GreaterThanThreshold"), TreatMissingData: jsii.String("notBreaching"),
	}
	if a.absent {
		props.ComparisonOperator, props.Threshold = jsii.String("LessThanThreshold"), jsii.Number(1)
		props.TreatMissingData = jsii.String("breaching")
	}
	if len(a.metrics) == 1 {
		m := a.metrics[0]
		props.Namespace, props.MetricName, props.Statistic = jsii.String(m.namespace), jsii.String(m.name), jsii.String(m.statistic)
		props.Period, props.Dimensions = num(fiveMinutes), m.labels()
	} else {
		props.Metrics = a.sum()
	}
	b.alarmed[a.id] = awscloudwatch.NewCfnAlarm(b.stack, jsii.String("Alarm"+a.id), props)
}

// sum returns the expression that adds the metrics. A missing value counts as 0.
func (a alarm) sum() []any {
	var all []any
	expression := ""
	for i, m := range a.metrics {
		id := "m" + strconv.Itoa(i)
		if i > 0 {
			expression += "+"
		}
		expression += "FILL(" + id + ",0)"
		all = append(all, &awscloudwatch.CfnAlarm_MetricDataQueryProperty{
			Id: jsii.String(id), ReturnData: false, MetricStat: &awscloudwatch.CfnAlarm_MetricStatProperty{
				Metric: &awscloudwatch.CfnAlarm_MetricProperty{
					Namespace: jsii.String(m.namespace), MetricName: jsii.String(m.name), Dimensions: m.labels(),
				},
				Period: num(fiveMinutes), Stat: jsii.String(m.statistic),
			},
		})
	}
	return append(all, &awscloudwatch.CfnAlarm_MetricDataQueryProperty{
		Id: jsii.String("sum"), Expression: jsii.String(expression), Label: jsii.String(a.id), ReturnData: true,
	})
}

func (m metric) labels() []any {
	var all []any
	for _, name := range slices.Sorted(maps.Keys(m.dimensions)) {
		all = append(all, &awscloudwatch.CfnAlarm_DimensionProperty{Name: jsii.String(name), Value: jsii.String(m.dimensions[name])})
	}
	return all
}
