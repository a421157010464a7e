// The program infra writes the CloudFormation template of Sortie. The command line of the CDK
// runs it. Its settings are in the CDK's context (cdk.json, -c key=value) or in the environment
// (STACK_KEY). Package stack documents them. "infra check -c key=value" only checks the
// settings, without the CDK and before any program is built.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/infra/stack"
)

func main() {
	act := synth
	if len(os.Args) > 1 && os.Args[1] == "check" {
		act = check
	}
	if err := act(); err != nil {
		fmt.Fprintln(os.Stderr, "Cannot create the stack:\n"+err.Error())
		os.Exit(1)
	}
}

func synth() error {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	settings, err := read(func(key string) (any, bool) {
		value := app.Node().TryGetContext(&key)
		return value, value != nil
	})
	if err != nil {
		return err
	}
	settings.Build = ".build"
	if _, err := stack.New(app, settings.StackName(), settings); err != nil {
		return err
	}
	app.Synth(nil)
	return nil
}

func check() error {
	file, err := os.ReadFile("cdk.json")
	if err != nil {
		return err
	}
	context, err := stack.FromContext(file, os.Args[2:])
	if err != nil {
		return err
	}
	_, err = read(context)
	return err
}

func read(context stack.Given) (stack.Settings, error) {
	return stack.ReadSettings(stack.FirstOf(context, stack.FromEnvironment(os.LookupEnv)))
}
