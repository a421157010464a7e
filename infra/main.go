// The program infra writes the CloudFormation template of Sortie. The CDK's command
// line runs it. Its settings are in the CDK's context (cdk.json, -c key=value) or in
// the environment (STACK_KEY); package stack documents them.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/infra/stack"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	settings, err := stack.ReadSettings(stack.FirstOf(
		func(key string) (any, bool) { value := app.Node().TryGetContext(&key); return value, value != nil },
		stack.FromEnvironment(os.LookupEnv),
	))
	if err == nil {
		settings.Build = ".build"
		_, err = stack.New(app, settings)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Cannot create the stack:\n"+err.Error())
		os.Exit(1) //nolint:gocritic // the CDK's process ends with this one
	}
	app.Synth(nil)
}
