package stack_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/statemachines"
)

func TestEveryTaskHasAFunction(t *testing.T) {
	t.Parallel()
	made := deployed(t)
	machine := named(t, made, "StepFunctions::StateMachine", "Run")
	var definition struct {
		TimeoutSeconds *int
		States         map[string]struct {
			Type       string
			Parameters struct{ FunctionName string }
		}
	}
	if err := json.Unmarshal([]byte(machine.Text("DefinitionString")), &definition); err != nil {
		t.Fatal(err)
	}
	if definition.TimeoutSeconds != nil {
		t.Error("got a time limit of executions, want none, or an alarm for ExecutionsTimedOut")
	}
	called := map[string]bool{}
	for name, state := range definition.States {
		if state.Type != "Task" {
			continue
		}
		id, found := strings.CutSuffix(strings.TrimPrefix(state.Parameters.FunctionName, "${"), ".Arn}")
		if f := made.Resources[id]; !found || f == nil || f.Type != "AWS::Lambda::Function" {
			t.Errorf("%s: got function %s", name, state.Parameters.FunctionName)
		}
		called["${"+id+".Arn}"] = true
	}
	if len(called) != len(statemachines.Functions()) {
		t.Errorf("got functions %v", called)
	}
	for _, s := range statements(made) {
		if strings.HasPrefix(s.where, "RoleRun") && slices.Contains(s.actions, "lambda:InvokeFunction") {
			if !slices.Equal(slices.Sorted(slices.Values(s.resources)), sortedKeys(called)) {
				t.Errorf("role: got functions %v, want %v", s.resources, called)
			}
		}
	}
	expect(t, machine, "STANDARD", "StateMachineType")
	expect(t, machine, "false", "LoggingConfiguration", "IncludeExecutionData")
	expect(t, machine, "ERROR", "LoggingConfiguration", "Level")
}

func TestStreamRetriesForADay(t *testing.T) {
	t.Parallel()
	stream := named(t, deployed(t), "Lambda::EventSourceMapping", "Stream")
	expect(t, stream, "true", "BisectBatchOnFunctionError")
	expect(t, stream, "-1", "MaximumRetryAttempts")
	expect(t, stream, "86400", "MaximumRecordAgeInSeconds")
	expect(t, stream, `["ReportBatchItemFailures"]`, "FunctionResponseTypes")
	expect(t, stream, "${DeadLetters.Arn}", "DestinationConfig", "OnFailure", "Destination")
	filters := stream.At("FilterCriteria", "Filters").([]any)
	if len(filters) != 1 || filters[0].(map[string]any)["Pattern"] != schema.StreamFilter {
		t.Errorf("got filters %v", filters)
	}
}

func TestUndeliveredEventsGoToTheQueue(t *testing.T) {
	t.Parallel()
	made := deployed(t)
	queue := named(t, made, "SQS::Queue", "DeadLetters")
	expect(t, queue, "1209600", "MessageRetentionPeriod")
	expect(t, queue, "true", "SqsManagedSseEnabled")
	// A failed sweep is repeated each minute. It must not fill the queue.
	if to := named(t, made, "Lambda::EventInvokeConfig", "SweepInvoke").At("DestinationConfig"); to != nil {
		t.Errorf("got destination %v of failed sweeps, want none", to)
	}
	policy := named(t, made, "SQS::QueuePolicy", "DeadLettersPolicy").Text("PolicyDocument")
	rules := made.Of("Events::Rule")
	for _, rule := range rules {
		if !strings.Contains(rule.Text("Targets"), `"DeadLetterConfig":{"Arn":{"Fn::GetAtt":["DeadLetters","Arn"]}}`) {
			t.Errorf("%s: got targets %s, want the dead-letter queue", rule.ID, rule.Text("Targets"))
		}
		if !strings.Contains(policy, `"`+rule.ID+`"`) {
			t.Errorf("the queue's policy does not allow %s", rule.ID)
		}
	}
	if len(rules) != 3 {
		t.Errorf("got %d rules, want 3", len(rules))
	}
	for _, s := range statements(made) {
		if strings.HasPrefix(s.where, "RoleSweep") && slices.Contains(s.actions, "sqs:SendMessage") {
			t.Errorf("%s may send to the queue, want no permission", s.where)
		}
	}
}

func TestSweepIsInvoked(t *testing.T) {
	t.Parallel()
	made := deployed(t)
	expect(t, named(t, made, "Events::Rule", "EveryMinute"), "rate(1 minute)", "ScheduleExpression")
	ended := named(t, made, "Events::Rule", "Ended")
	for _, status := range []string{"FAILED", "TIMED_OUT", "ABORTED"} {
		if !strings.Contains(ended.Text("EventPattern"), status) {
			t.Errorf("got no event for executions that end %s", status)
		}
	}
	if !strings.Contains(ended.Text("EventPattern"), "stateMachine:sortie-dev-run") {
		t.Error("got events of other state machines")
	}
}

// TestEveryFailureHasAnAlarm checks that each failure metric has an alarm. Each alarm has an
// action, describes what to do, and is published.
func TestEveryFailureHasAnAlarm(t *testing.T) {
	t.Parallel()
	made := everything(t)
	watched := ""
	for _, a := range made.Of("CloudWatch::Alarm") {
		watched += a.Text("Namespace") + " " + a.Text("MetricName") + " " + a.Text("Metrics") + "\n"
		if !strings.Contains(a.Text("AlarmDescription"), ". What to do: ") {
			t.Errorf("%s: got no \"What to do\"", a.ID)
		}
		for _, actions := range []string{"AlarmActions", "OKActions"} {
			expect(t, a, `[{"Ref":"Alarms"}]`, actions)
		}
		want := "notBreaching"
		if a.ID == "AlarmSweepStopped" {
			want = "breaching"
		}
		expect(t, a, want, "TreatMissingData")
	}
	for _, metric := range []string{
		"5XXError", "IteratorAge", "Invocations", "AWS/Lambda Throttles", "AWS/States ExecutionsFailed",
		"ExecutionThrottled", "AWS/DynamoDB WriteThrottleEvents",
		"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage",
		"AWS/Lambda Errors", `"Value":"sortie-dev-launch"`, `"Value":"sortie-dev-terminate"`,
	} {
		if !strings.Contains(watched, metric) {
			t.Errorf("got no alarm for %s", metric)
		}
	}
	expect(t, named(t, made, "SNS::Subscription", "AlarmsMail"), "watch@example.org", "Endpoint")
	// Prices per month, us-east-1, November 2026: a metric of an alarm $0.10, a key $1, a
	// secret $0.40. The goal for an idle stack is $5, including sweeps and logs.
	idle := deployed(t)
	metrics := 0
	for _, a := range idle.Of("CloudWatch::Alarm") {
		metrics += max(1, strings.Count(a.Text("Metrics"), `"MetricStat"`))
	}
	if cost := 0.10*float64(metrics) + 1.00*float64(len(idle.Of("KMS::Key"))) + 0.40*float64(len(idle.Of("SecretsManager::Secret"))); cost > 3.9+1e-9 {
		t.Errorf("got $%.2f a month for alarms, keys and secrets, want at most 3.90", cost)
	}
}

func TestConcurrencyIsReservedOnRequest(t *testing.T) {
	t.Parallel()
	for _, f := range deployed(t).Of("Lambda::Function") {
		if f.At("ReservedConcurrentExecutions") != nil {
			t.Errorf("%s: got reserved concurrency, which a new account refuses", f.ID)
		}
	}
	made := everything(t)
	expect(t, functionOf(t, made, "callback"), "100", "ReservedConcurrentExecutions")
	expect(t, functionOf(t, made, "sweep"), "512", "MemorySize")
}

// TestFunctionsNeedNoOtherRuntime checks that every function of the template is a program of
// this repository. The CDK can add a function for a custom resource, whose runtime goes out of
// support.
func TestFunctionsNeedNoOtherRuntime(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]template.Template{
		"the defaults": deployed(t), "everything": everything(t), "without data": synth(t, map[string]any{"retain": false, "outputs": "s3"}),
	} {
		for _, f := range made.Of("Lambda::Function") {
			expect(t, f, "provided.al2023", "Runtime")
		}
		for _, r := range made.Resources {
			if strings.HasPrefix(r.Type, "Custom::") || r.Type == "AWS::CloudFormation::CustomResource" {
				t.Errorf("%s: got the custom resource %s", name, r.ID)
			}
		}
	}
	for _, name := range functionsOf(deployed(t)) {
		want := "128"
		if name == "sweep" || name == "deliver" || name == "push" {
			want = "256"
		}
		expect(t, functionOf(t, deployed(t), name), want, "MemorySize")
	}
}

// TestTracesAreSampled checks that every role that sends traces may read the sampling rules.
func TestTracesAreSampled(t *testing.T) {
	t.Parallel()
	traced := 0
	for _, s := range statements(everything(t)) {
		if !slices.Contains(s.actions, "xray:PutTraceSegments") {
			continue
		}
		traced++
		for _, action := range []string{"xray:GetSamplingRules", "xray:GetSamplingTargets", "xray:PutTelemetryRecords"} {
			if !slices.Contains(s.actions, action) {
				t.Errorf("%s may not %s", s.where, action)
			}
		}
	}
	if want := len(stack.Functions()) + 1; traced != want {
		t.Errorf("got %d roles with traces, want %d", traced, want)
	}
}
