package stack

import (
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"
)

// retired are functions of earlier releases. An upgraded stack keeps their logs.
var retired = []string{"download"}

// addFunctions adds the functions, each with its own role and log group.
func (b *builder) addFunctions() {
	for _, name := range retired {
		b.newLogGroup("Logs"+capital(name), "")
	}
	grants := b.grants()
	for _, name := range b.settings.Functions() {
		env := map[string]string{"SORTIE_STAGE": b.settings.Stage}
		if functions[name].kind == step {
			env["SORTIE_STEP"] = name
		}
		logs := b.newLogGroup("Logs"+capital(name), "")
		b.logs = append(b.logs, logs)
		allow := []statement{{actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, resources: []string{*logs.AttrArn()}}}
		for _, u := range functions[name].uses {
			maps.Copy(env, grants[u].env)
			allow = append(allow, grants[u].allow...)
		}
		b.functions[name] = b.newFunction(name, env, allow, logs)
		b.addAlias(name)
	}
}

// continuing lists the functions that call themselves while there is work, directly or by a
// queue. By default Lambda would stop them after 16 calls in a row.
var continuing = []string{"deliver", "dispatch", "push"}

func (b *builder) newFunction(name string, env map[string]string, allow []statement, logs awslogs.CfnLogGroup) awslambda.Function {
	architecture := awslambda.Architecture_ARM_64()
	if b.settings.Arch != "arm64" {
		architecture = awslambda.Architecture_X86_64()
	}
	tracing := awslambda.Tracing_DISABLED
	if b.settings.Tracing {
		tracing = awslambda.Tracing_ACTIVE
		allow = append(allow, traces())
	}
	variables := map[string]*string{}
	for key, value := range env {
		variables[key] = jsii.String(value)
	}
	role := b.newRole("Role"+capital(name), "lambda.amazonaws.com", allow)
	props := &awslambda.FunctionProps{
		FunctionName: jsii.String(b.name(name)),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(), Handler: jsii.String("bootstrap"), Architecture: architecture,
		Code:       awslambda.Code_FromAsset(jsii.String(b.settings.asset(Program(name))), nil),
		MemorySize: num(b.settings.memory(name)), Timeout: awscdk.Duration_Seconds(num(b.settings.timeout(name))),
		Environment: &variables, Tracing: tracing,
		LogGroup: awslogs.LogGroup_FromLogGroupName(b.stack, jsii.String("LogsOf"+capital(name)), logs.Ref()),
		// Lambda's own three lines for each call repeat its metrics and would be a third of the
		// log. WARN keeps the line for a call that timed out.
		LoggingFormat: awslambda.LoggingFormat_JSON, SystemLogLevelV2: awslambda.SystemLogLevel_WARN,
		// The CDK must not add permissions.
		Role: role.WithoutPolicyUpdates(nil),
	}
	if slices.Contains(continuing, name) {
		props.RecursiveLoop = awslambda.RecursiveLoop_ALLOW
	}
	if n, ok := b.settings.Reserved[name]; ok {
		props.ReservedConcurrentExecutions = num(n)
	}
	id := capital(name)
	if id == tableStream {
		id += "Readers"
	}
	return awslambda.NewFunction(b.stack, jsii.String(id), props)
}

// newLogGroup adds a log group. If name is empty, CloudFormation names it. CloudWatch encrypts
// it. It is deleted with the stack, because the history of runs is in the table.
func (b *builder) newLogGroup(id, name string) awslogs.CfnLogGroup {
	group := awslogs.NewCfnLogGroup(b.stack, jsii.String(id), &awslogs.CfnLogGroupProps{
		LogGroupName: optional(name), RetentionInDays: num(b.settings.LogDays),
	})
	group.ApplyRemovalPolicy(awscdk.RemovalPolicy_DESTROY, nil)
	return group
}

// traces returns the permissions for X-Ray, whose actions apply to no resource.
func traces() statement {
	return statement{actions: []string{
		"xray:GetSamplingRules", "xray:GetSamplingStatisticSummaries", "xray:GetSamplingTargets",
		"xray:PutTelemetryRecords", "xray:PutTraceSegments",
	}, resources: []string{"*"}}
}

// capital returns the name of a function with a capital letter, as resources and the state
// machine use it.
func capital(name string) string { return string(name[0]-'a'+'A') + name[1:] }
