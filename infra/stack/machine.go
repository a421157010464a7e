package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/statemachines"
)

// machine is the state machine as others refer to it.
type machine struct {
	name, arn string
	// executions matches the ARNs of its executions.
	executions string
}

// nameMachine fixes the machine's name, so that functions can be told of it
// which it calls itself.
func (h *house) nameMachine() {
	name := h.name("run")
	h.machine = machine{
		name:       name,
		arn:        h.arn("states", "stateMachine", name, awscdk.ArnFormat_COLON_RESOURCE_NAME),
		executions: h.arn("states", "execution", name+":*", awscdk.ArnFormat_COLON_RESOURCE_NAME),
	}
}

// addMachine makes the state machine of a run. Its log has every failure and
// every end of an execution, and never what an execution carries.
func (h *house) addMachine() {
	arns, calls := map[string]string{}, []string{}
	for _, name := range named(step) {
		arns[capital(name)] = *h.functions[name].FunctionArn()
		calls = append(calls, arns[capital(name)])
	}
	definition, err := statemachines.Run(arns)
	if err != nil { // a test holds state machine and functions together
		panic(err)
	}
	// CloudWatch bounds the resource policies of all other log groups together;
	// those of this prefix need none.
	logs := h.newLogGroup("LogsRun", "/aws/vendedlogs/states/"+h.machine.name)
	allow := []statement{
		{[]string{"lambda:InvokeFunction"}, calls},
		// The delivery of logs knows no resource.
		{[]string{
			"logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups", "logs:DescribeResourcePolicies",
			"logs:GetLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
		}, []string{"*"}},
	}
	if h.settings.Tracing {
		allow = append(allow, traces())
	}
	role := h.newRole("RoleRun", "states.amazonaws.com", allow)
	awsstepfunctions.NewCfnStateMachine(h.stack, jsii.String("Run"), &awsstepfunctions.CfnStateMachineProps{
		StateMachineName: jsii.String(h.machine.name), StateMachineType: jsii.String("STANDARD"),
		DefinitionString: jsii.String(definition), RoleArn: role.RoleArn(),
		LoggingConfiguration: &awsstepfunctions.CfnStateMachine_LoggingConfigurationProperty{
			Level: jsii.String("ERROR"), IncludeExecutionData: false,
			Destinations: []any{&awsstepfunctions.CfnStateMachine_LogDestinationProperty{
				CloudWatchLogsLogGroup: &awsstepfunctions.CfnStateMachine_CloudWatchLogsLogGroupProperty{LogGroupArn: logs.AttrArn()},
			}},
		},
		TracingConfiguration: &awsstepfunctions.CfnStateMachine_TracingConfigurationProperty{Enabled: h.settings.Tracing},
	})
}
