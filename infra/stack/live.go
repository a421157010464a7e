package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// live is the alias that callers use with gradual deployments.
const live = "live"

// A gradual deployment of the state machine moves gradualPercent of the new executions for
// gradualMinutes. The deployments of functions use the same numbers. The alarms need ten
// minutes.
const (
	gradualPercent = 10
	gradualMinutes = 15
)

// guards are the alarms that roll back a gradual deployment.
var guards = []string{"ApiFails", "RelayFails", "StepsFail", "SweepFails"}

// callable returns the target that callers of a function invoke: its alias, or the function
// itself.
func (b *builder) callable(name string) awslambda.IFunction {
	if alias := b.aliases[name]; alias != nil {
		return alias
	}
	return b.functions[name]
}

// addAlias adds the alias of a function, with a version of its present code and settings.
func (b *builder) addAlias(name string) {
	if b.settings.Gradual {
		b.aliases[name] = awslambda.NewAlias(b.stack, jsii.String("Live"+capital(name)), &awslambda.AliasProps{
			AliasName: jsii.String(live), Version: b.functions[name].CurrentVersion(),
		})
	}
}

// started returns the ARN with which executions are started.
func (b *builder) started() string {
	if b.settings.Gradual {
		return b.machine.arn + ":" + live
	}
	return b.machine.arn
}

// addGradual adds the deployments of functions, which CodeDeploy performs, and the alias of the
// state machine. Executions in flight keep their version.
func (b *builder) addGradual() {
	if !b.settings.Gradual {
		return
	}
	app := awscodedeploy.NewLambdaApplication(b.stack, jsii.String("Gradual"), &awscodedeploy.LambdaApplicationProps{
		ApplicationName: jsii.String(b.name("functions")),
	})
	role := awsiam.NewRole(b.stack, jsii.String("RoleGradual"), &awsiam.RoleProps{
		AssumedBy:       awsiam.NewServicePrincipal(jsii.String("codedeploy.amazonaws.com"), nil),
		ManagedPolicies: &[]awsiam.IManagedPolicy{awsiam.ManagedPolicy_FromAwsManagedPolicyName(jsii.String("service-role/AWSCodeDeployRoleForLambdaLimited"))},
	})
	var alarms []interfacesawscloudwatch.IAlarmRef
	var names []*string
	for _, id := range guards {
		alarms = append(alarms, b.alarmed[id])
		names = append(names, b.alarmed[id].AlarmName())
	}
	for _, name := range b.settings.Functions() {
		awscodedeploy.NewLambdaDeploymentGroup(b.stack, jsii.String("Gradual"+capital(name)), &awscodedeploy.LambdaDeploymentGroupProps{
			Application: app, Alias: b.aliases[name], Role: role.WithoutPolicyUpdates(nil), Alarms: &alarms,
			DeploymentConfig: awscodedeploy.LambdaDeploymentConfig_CANARY_10PERCENT_15MINUTES(),
			AutoRollback:     &awscodedeploy.AutoRollbackConfig{FailedDeployment: jsii.Bool(true), StoppedDeployment: jsii.Bool(true), DeploymentInAlarm: jsii.Bool(true)},
		})
	}
	version := awsstepfunctions.NewCfnStateMachineVersion(b.stack, jsii.String("RunVersion"), &awsstepfunctions.CfnStateMachineVersionProps{
		StateMachineArn: b.machine.made.AttrArn(), StateMachineRevisionId: b.machine.made.AttrStateMachineRevisionId(),
	})
	version.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN, nil) // executions of the previous version are in flight
	awsstepfunctions.NewCfnStateMachineAlias(b.stack, jsii.String("LiveRun"), &awsstepfunctions.CfnStateMachineAliasProps{
		Name: jsii.String(live), DeploymentPreference: &awsstepfunctions.CfnStateMachineAlias_DeploymentPreferenceProperty{
			StateMachineVersionArn: version.AttrArn(), Type: jsii.String("CANARY"), Alarms: &names,
			Percentage: num(gradualPercent), Interval: num(gradualMinutes),
		},
	})
}

// alarmed maps ids to alarms.
type alarmed map[string]awscloudwatch.CfnAlarm
