package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/statemachines"
)

// machine identifies the state machine for other resources.
type machine struct {
	name, arn string
	// executions matches the ARNs of its executions.
	executions string
	made       awsstepfunctions.CfnStateMachine
}

// nameMachine sets the name and the ARN of the state machine before it exists, because its own
// functions refer to them.
func (b *builder) nameMachine() {
	name := b.name("run")
	b.machine = machine{
		name:       name,
		arn:        b.arn("states", "stateMachine", name, awscdk.ArnFormat_COLON_RESOURCE_NAME),
		executions: b.arn("states", "execution", name+":*", awscdk.ArnFormat_COLON_RESOURCE_NAME),
	}
}

// addMachine adds the state machine of runs. It logs errors without the data of executions.
func (b *builder) addMachine() {
	arns, calls := map[string]string{}, []string{}
	for _, name := range named(step) {
		arns[capital(name)] = *b.callable(name).FunctionArn()
		calls = append(calls, arns[capital(name)])
		if b.aliases[name] != nil {
			// Executions of a version without aliases may be in flight.
			calls = append(calls, *b.functions[name].FunctionArn())
		}
	}
	definition, err := statemachines.RunIn(*b.stack.Partition(), arns)
	if err != nil { // a test compares its functions with those of this package
		panic(err)
	}
	// CloudWatch limits the resource policies of an account. Log groups with this prefix need
	// no policy.
	logs := b.newLogGroup("LogsRun", "/aws/vendedlogs/states/"+b.machine.name)
	allow := []statement{
		{actions: []string{"lambda:InvokeFunction"}, resources: calls},
		// The API for log deliveries has no resources.
		{actions: []string{
			"logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups", "logs:DescribeResourcePolicies",
			"logs:GetLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
		}, resources: []string{"*"}},
	}
	if b.settings.Tracing {
		allow = append(allow, traces())
	}
	role := b.newRole("RoleRun", "states.amazonaws.com", allow)
	b.machine.made = awsstepfunctions.NewCfnStateMachine(b.stack, jsii.String("Run"), &awsstepfunctions.CfnStateMachineProps{
		StateMachineName: jsii.String(b.machine.name), StateMachineType: jsii.String("STANDARD"),
		DefinitionString: jsii.String(definition), RoleArn: role.RoleArn(),
		LoggingConfiguration: &awsstepfunctions.CfnStateMachine_LoggingConfigurationProperty{
			Level: jsii.String("ERROR"), IncludeExecutionData: false,
			Destinations: []any{&awsstepfunctions.CfnStateMachine_LogDestinationProperty{
				CloudWatchLogsLogGroup: &awsstepfunctions.CfnStateMachine_CloudWatchLogsLogGroupProperty{LogGroupArn: logs.AttrArn()},
			}},
		},
		TracingConfiguration: &awsstepfunctions.CfnStateMachine_TracingConfigurationProperty{Enabled: b.settings.Tracing},
	})
}
