package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// house is the stack while it is built: what one concern makes and another
// refers to. Each field is set by the file of its name.
type house struct {
	stack    awscdk.Stack
	settings Settings

	table   table
	buckets buckets
	keys    []string
	secrets secretSet
	bus     bus
	machine machine
	lost    lost
	// url is where the API is reached, with its stage.
	url       string
	functions map[string]awslambda.Function
}

// New adds the stack of a stage to the app. The error names every program that is
// not built.
func New(app constructs.Construct, s Settings) (awscdk.Stack, error) {
	var missing []error
	for _, name := range Programs() {
		if _, err := os.Stat(filepath.Join(s.asset(name), "bootstrap")); err != nil {
			missing = append(missing, fmt.Errorf("%s is not built for %s: run make functions", name, s.Arch))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return nil, err
	}
	h := &house{settings: s, functions: map[string]awslambda.Function{}}
	h.stack = awscdk.NewStack(app, jsii.String("sortie-"+s.Stage), &awscdk.StackProps{
		Env:         &awscdk.Environment{Account: optional(s.Account), Region: optional(s.Region)},
		Description: jsii.String("Sortie, stage " + s.Stage),
	})
	for name, value := range map[string]string{"project": "sortie", "stage": s.Stage} {
		awscdk.Tags_Of(h.stack).Add(jsii.String(name), jsii.String(value), nil)
	}
	h.addTable()
	h.addSecrets()
	h.addOutputs()
	h.addKeys()
	h.addBus()
	h.nameMachine()
	api := h.newAPI()
	h.addFunctions()
	h.addMachine()
	h.addRoutes(api)
	h.addEvents()
	h.addSchedules()
	h.openLost()
	h.addAlarms(api)
	h.addResults()
	return h.stack, nil
}

// asset is the folder of a built program.
func (s Settings) asset(name string) string { return filepath.Join(s.Build, s.Arch, name) }

// name is the name of a resource that people look for, unique in the account.
func (h *house) name(of string) string { return "sortie-" + h.settings.Stage + "-" + of }

// removal is what becomes of data when the stack is destroyed.
func (h *house) removal() awscdk.RemovalPolicy {
	if h.settings.Retain {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}

// arn is the ARN of something of this account and region.
func (h *house) arn(service, resource, name string, format awscdk.ArnFormat) string {
	return *h.stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String(service), Resource: jsii.String(resource), ResourceName: jsii.String(name), ArnFormat: format,
	})
}

// result is an output of the stack.
func (h *house) result(name, value, meaning string) {
	awscdk.NewCfnOutput(h.stack, jsii.String(name), &awscdk.CfnOutputProps{Value: jsii.String(value), Description: jsii.String(meaning)})
}

// addResults tells what a command or a person needs to find the deployment.
func (h *house) addResults() {
	h.result("URL", h.url, "where the API is")
	h.result("TableName", h.table.name, "the table")
	h.result("StateMachineArn", h.machine.arn, "the state machine of runs")
	h.result("BusName", h.bus.name, "the bus that events are published to")
	h.result("ClientsSecret", h.secrets.clientsName, "the secret with the tokens of clients")
	h.result("FlySecret", h.secrets.flyName, "the secret with the token of the Machines API")
	h.result("OutputsSecret", h.secrets.outputsName, "the secret with the keys to the outputs")
	h.result("UploadsBucket", h.buckets.uploads, "the bucket that workers write to")
	h.result("KeptBucket", h.buckets.kept, "the bucket that downloads come from")
	h.result("LostQueue", h.lost.url, "the queue of what could not be handled")
}

// optional is nil for an empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return jsii.String(text)
}

// texts are values as the CDK takes them.
func texts(values []string) *[]*string { return jsii.Strings(values...) }

// num is a number as the CDK takes it.
func num(n int) *float64 { return jsii.Number(float64(n)) }
