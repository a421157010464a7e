package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// builder contains the resources of the stack that other resources refer to. The file with the
// name of a field sets the field.
type builder struct {
	stack    awscdk.Stack
	settings Settings

	table   table
	buckets buckets
	keys    []string
	secrets map[string]awssecretsmanager.CfnSecret // by kind
	bus     bus
	machine machine
	dead    deadLetters
	wakes   wakeUps
	// deliveries is the queue of webhooks.
	deliveries deliveries
	sockets    sockets
	// url is the address of the API, with the stage.
	url       string
	functions map[string]awslambda.Function
	aliases   map[string]awslambda.Alias
	logs      []awslogs.CfnLogGroup // of the functions
	alarmed   alarmed
	topic     string // the ARN of the alarms' topic
}

// Sortie is the stack of a stage, with the attributes to which other stacks of an app refer.
type Sortie struct {
	awscdk.Stack
	// URL is the address of the API.
	URL string
	// BusName and BusArn identify the bus with the events of runs.
	BusName, BusArn string
	// AlarmTopicArn is the topic of all alarms.
	AlarmTopicArn string
}

// New adds the stack of a stage to a scope, which is an app or a stage of an app. id is the id
// of the construct. The stack is named after the stage ("sortie-prod"); the command line finds
// it by that name. s is a result of ReadSettings with Build set. The error lists all programs
// that are not built.
func New(scope constructs.Construct, id string, s Settings) (*Sortie, error) {
	var missing []error
	for _, name := range Programs() {
		if _, err := os.Stat(filepath.Join(s.asset(name), "bootstrap")); err != nil {
			missing = append(missing, fmt.Errorf("%s is not built for %s: run make functions", name, s.Arch))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return nil, err
	}
	b := &builder{settings: s, functions: map[string]awslambda.Function{}, aliases: map[string]awslambda.Alias{}, alarmed: alarmed{}}
	b.stack = awscdk.NewStack(scope, jsii.String(id), &awscdk.StackProps{
		StackName:   jsii.String(s.StackName()),
		Env:         &awscdk.Environment{Account: optional(s.Account), Region: optional(s.Region)},
		Description: jsii.String("Sortie, stage " + s.Stage),
		// "make destroy" needs an explicit word for a stage that retains its data.
		TerminationProtection: jsii.Bool(s.Retain),
	})
	for name, value := range map[string]string{"project": "sortie", "stage": s.Stage} {
		awscdk.Tags_Of(b.stack).Add(jsii.String(name), jsii.String(value), nil)
	}
	b.addTable()
	b.addSecrets()
	b.addOutputs()
	b.addKeys()
	b.addBus()
	b.addDeliveries()
	b.nameMachine()
	b.addSockets()
	api := b.newAPI()
	b.addWakeUps()
	b.addFunctions()
	b.addMachine()
	b.addRoutes(api)
	b.addEvents()
	b.addSchedules()
	b.addFire()
	b.addDeliver()
	b.addDispatch()
	b.addSocketRoutes(api)
	b.addCanary()
	b.allowDeadLetters()
	b.addAlarms(api)
	if err := b.addDashboard(); err != nil {
		return nil, err
	}
	b.addGradual()
	b.addFirewall(api)
	b.addBackup()
	b.addBudget()
	b.addResults()
	return &Sortie{b.stack, b.url, b.bus.name, b.bus.arn, b.topic}, nil
}

// StackName returns the name of the stage's stack.
func (s Settings) StackName() string { return "sortie-" + s.Stage }

// asset returns the folder of a built program.
func (s Settings) asset(name string) string { return filepath.Join(s.Build, s.Arch, name) }

// name returns the name of a resource, which is unique in the account.
func (b *builder) name(of string) string { return "sortie-" + b.settings.Stage + "-" + of }

// removal returns the policy for data when the stack is destroyed. A first deployment that
// fails keeps no data, so that it can be repeated under the same names.
func (b *builder) removal() awscdk.RemovalPolicy {
	if b.settings.Retain {
		return awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE
	}
	return awscdk.RemovalPolicy_DESTROY
}

// arn returns an ARN in this account and region.
func (b *builder) arn(service, resource, name string, format awscdk.ArnFormat) string {
	return *b.stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String(service), Resource: jsii.String(resource), ResourceName: jsii.String(name), ArnFormat: format,
	})
}

// result adds an output of the stack.
func (b *builder) result(name, value, meaning string) {
	awscdk.NewCfnOutput(b.stack, jsii.String(name), &awscdk.CfnOutputProps{Value: jsii.String(value), Description: jsii.String(meaning)})
}

// addResults adds the outputs by which commands and people find the deployment.
func (b *builder) addResults() {
	b.result("URL", b.url, "the address of the API")
	b.result("TableName", b.table.name, "the table")
	b.result("StateMachineArn", b.machine.arn, "the state machine of runs")
	b.result("BusName", b.bus.name, "the event bus")
	b.result("UploadsBucket", b.buckets.uploads, "the bucket that workers write to")
	b.result("AcceptedBucket", b.buckets.accepted, "the bucket that downloads come from")
	b.addClusterRoles()
	b.result("DeadLetterQueue", b.dead.url, "the queue of what could not be processed")
}

// optional returns a pointer to text, or nil if text is empty.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return jsii.String(text)
}

// texts converts values to the type that the CDK accepts.
func texts(values []string) *[]*string { return jsii.Strings(values...) }

// num converts n to the type that the CDK accepts.
func num(n int) *float64 { return jsii.Number(float64(n)) }
