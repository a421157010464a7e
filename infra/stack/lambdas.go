package stack

import (
	"maps"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"
)

// addFunctions makes the functions, each with a role and a log group of its own.
func (h *house) addFunctions() {
	needs := h.needs()
	for _, name := range Functions() {
		env := map[string]string{"SORTIE_STAGE": h.settings.Stage}
		if functions[name].kind == step {
			env["SORTIE_STEP"] = name
		}
		logs := h.newLogGroup("Logs"+capital(name), "")
		allow := []statement{{[]string{"logs:CreateLogStream", "logs:PutLogEvents"}, []string{*logs.AttrArn()}}}
		for _, u := range functions[name].uses {
			maps.Copy(env, needs[u].env)
			allow = append(allow, needs[u].allow...)
		}
		h.functions[name] = h.newFunction(name, env, allow, logs)
	}
}

func (h *house) newFunction(name string, env map[string]string, allow []statement, logs awslogs.CfnLogGroup) awslambda.Function {
	architecture := awslambda.Architecture_ARM_64()
	if h.settings.Arch != "arm64" {
		architecture = awslambda.Architecture_X86_64()
	}
	tracing := awslambda.Tracing_DISABLED
	if h.settings.Tracing {
		tracing = awslambda.Tracing_ACTIVE
		allow = append(allow, traces())
	}
	variables := map[string]*string{}
	for key, value := range env {
		variables[key] = jsii.String(value)
	}
	role := h.newRole("Role"+capital(name), "lambda.amazonaws.com", allow)
	props := &awslambda.FunctionProps{
		FunctionName: jsii.String(h.name(name)),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(), Handler: jsii.String("bootstrap"), Architecture: architecture,
		Code:       awslambda.Code_FromAsset(jsii.String(h.settings.asset(Program(name))), nil),
		MemorySize: num(h.settings.memory(name)), Timeout: awscdk.Duration_Seconds(num(h.settings.timeout(name))),
		Environment: &variables, Tracing: tracing,
		LogGroup: awslogs.LogGroup_FromLogGroupName(h.stack, jsii.String("LogsOf"+capital(name)), logs.Ref()),
		// Lambda's own three lines about each call say what its metrics do, and
		// would be a third of the log; it still tells of a call that it had to end.
		LoggingFormat: awslambda.LoggingFormat_JSON, SystemLogLevelV2: awslambda.SystemLogLevel_WARN,
		// What the role may do stands above; the CDK adds nothing to it.
		Role: role.WithoutPolicyUpdates(nil),
	}
	if n, told := h.settings.Reserved[name]; told {
		props.ReservedConcurrentExecutions = num(n)
	}
	return awslambda.NewFunction(h.stack, jsii.String(capital(name)), props)
}

// newLogGroup makes a log group, named by CloudFormation where name is empty.
// CloudWatch encrypts it. It goes with the stack: what happened to runs is in
// the table.
func (h *house) newLogGroup(id, name string) awslogs.CfnLogGroup {
	group := awslogs.NewCfnLogGroup(h.stack, jsii.String(id), &awslogs.CfnLogGroupProps{
		LogGroupName: optional(name), RetentionInDays: num(h.settings.LogDays),
	})
	group.ApplyRemovalPolicy(awscdk.RemovalPolicy_DESTROY, nil)
	return group
}

// traces is what a role needs for X-Ray, which knows no resource.
func traces() statement {
	return statement{[]string{"xray:PutTelemetryRecords", "xray:PutTraceSegments"}, []string{"*"}}
}

// capital is a function's name as that of a resource, and as the state machine
// has it.
func capital(name string) string { return string(name[0]-'a'+'A') + name[1:] }
