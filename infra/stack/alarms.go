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

// metric is one metric of AWS, over five minutes.
type metric struct {
	namespace, name, statistic string
	dimensions                 map[string]string
}

// alarm is one alarm. Each metric costs $0.10 a month, so a stack that idles
// can afford few: what many alarms would tell is summed in one, and whoever
// looks finds the function in its log.
type alarm struct {
	id      string
	metrics []metric // their sum counts
	// above raises the alarm: more than it, in that many periods of five minutes
	// one after the other.
	above   float64
	periods int
	// absent raises it where less than one was counted, or nothing.
	absent bool
	// meaning and what to do.
	meaning, todo string
}

// fiveMinutes is the period of each alarm, in seconds.
const fiveMinutes = 300

// alarms are all ways of failing that nobody would see otherwise.
func (h *house) alarms(api awsapigateway.RestApi) []alarm {
	lambda := func(metricName, statistic string, names ...string) []metric {
		var all []metric
		for _, name := range names {
			all = append(all, metric{"AWS/Lambda", metricName, statistic, map[string]string{"FunctionName": h.name(name)}})
		}
		return all
	}
	machine := func(names ...string) []metric {
		var all []metric
		for _, name := range names {
			all = append(all, metric{"AWS/States", name, "Sum", map[string]string{"StateMachineArn": h.machine.arn}})
		}
		return all
	}
	table := func(names ...string) []metric {
		var all []metric
		for _, name := range names {
			all = append(all, metric{"AWS/DynamoDB", name, "Sum", map[string]string{"TableName": h.table.name}})
		}
		return all
	}
	return []alarm{
		{
			id: "ApiFails", above: 0, periods: 2,
			metrics: []metric{{"AWS/ApiGateway", "5XXError", "Sum", map[string]string{"ApiName": *api.RestApiName(), "Stage": h.settings.Stage}}},
			meaning: "the API answers with 5xx: a front door fails, takes too long or is throttled",
			todo:    "find the requests in the access log by their status, and their requestId in the function's log",
		},
		{
			id: "StepsFail", above: 0, periods: 2, metrics: lambda("Errors", "Sum", named(step)...),
			meaning: "functions of the state machine fail; it tries again for a day, so runs are late and not yet lost",
			todo:    "look into the logs of admit, constrain, act, launch, supervise and terminate; roll back if a deployment did it",
		},
		{
			id: "SweepFails", above: 0, periods: 3, metrics: lambda("Errors", "Sum", "sweep"),
			meaning: "the sweep fails, three times five minutes long: what got lost is not found, machines may be left running",
			todo:    "its log names each part that went wrong; see whether the Machines API, the table or the secrets are at fault",
		},
		{
			id: "SweepStopped", absent: true, periods: 1, metrics: lambda("Invocations", "Sum", "sweep"),
			meaning: "the sweep was not called for five minutes",
			todo:    "see whether the rule EveryMinute is enabled and whether the account has concurrency left",
		},
		{
			id: "RelayFails", above: 0, periods: 2, metrics: lambda("Errors", "Sum", "relay"),
			meaning: "the relay fails: events are published late, and after ten tries not at all",
			todo:    "look into its log; what it gave up stands in the queue of the alarm Lost",
		},
		{
			id: "RelayLate", above: 60_000, periods: 2, metrics: lambda("IteratorAge", "Maximum", "relay"),
			meaning: "events wait in the table's stream for more than a minute; after a day they are gone",
			todo:    "look for throttles and failures of the relay and for a poison record in its log",
		},
		{
			id: "Lost", above: 0, periods: 1,
			metrics: []metric{{"AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", map[string]string{"QueueName": h.lost.name}}},
			meaning: "there is something in the queue of what could not be handled: batches of the stream, or calls of the sweep",
			todo:    "read the messages: a batch names its shard and sequence numbers, and the records themselves are in the table; delete them when done",
		},
		{
			id: "Throttled", above: 0, periods: 2, metrics: []metric{{"AWS/Lambda", "Throttles", "Sum", nil}},
			meaning: "calls of functions are refused for want of concurrency, in this account and region as a whole, for they share it",
			todo:    "raise the quota \"Concurrent executions\", or see which function takes it all; reserve some for callback",
		},
		{
			id: "ExecutionsEnd", above: 0, periods: 1, metrics: machine("ExecutionsFailed", "ExecutionsTimedOut"),
			meaning: "executions ended in a way that nobody foresaw; the sweep starts each once more and then marks its run Orphaned",
			todo:    "read the state machine's log: it has the state and the error",
		},
		{
			id: "ExecutionsThrottled", above: 0, periods: 3, metrics: machine("ExecutionThrottled"),
			meaning: "Step Functions holds transitions back: runs are late",
			todo:    "raise the quota of state transitions, or admit fewer runs at once",
		},
		{
			id: "TableThrottled", above: 0, periods: 2, metrics: table("ReadThrottleEvents", "WriteThrottleEvents"),
			meaning: "the table refuses requests: it grows by itself, but not at once, or one key is too hot",
			todo:    "wait half an hour; if it stays, look for the key with Contributor Insights",
		},
	}
}

// addAlarms makes the alarms and the topic that they are told to. The topic is
// not encrypted with a key: CloudWatch cannot publish with SNS's own, and what
// it says is no secret.
func (h *house) addAlarms(api awsapigateway.RestApi) {
	topic := awssns.NewCfnTopic(h.stack, jsii.String("Alarms"), &awssns.CfnTopicProps{TopicName: jsii.String(h.name("alarms"))})
	if h.settings.AlarmEmail != "" {
		awssns.NewCfnSubscription(h.stack, jsii.String("AlarmsMail"), &awssns.CfnSubscriptionProps{
			TopicArn: topic.Ref(), Protocol: jsii.String("email"), Endpoint: jsii.String(h.settings.AlarmEmail),
		})
	}
	h.result("AlarmTopic", *topic.Ref(), "the topic that alarms are told to")
	for _, a := range h.alarms(api) {
		h.addAlarm(a, topic)
	}
}

func (h *house) addAlarm(a alarm, topic awssns.CfnTopic) {
	props := &awscloudwatch.CfnAlarmProps{
		AlarmName: jsii.String(h.name(a.id)), AlarmDescription: jsii.String(a.meaning + ". What to do: " + a.todo + "."),
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
	awscloudwatch.NewCfnAlarm(h.stack, jsii.String("Alarm"+a.id), props)
}

// sum adds the metrics up; one that has nothing is 0.
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
