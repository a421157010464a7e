package stack_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// app returns an app with Sortie and a queue that receives the failures of runs. build is the
// folder that "make functions" fills in a checkout of Sortie.
func app(out, build string) (awscdk.App, error) {
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: &out})
	settings, err := stack.StageSettings("prod", map[string]any{"alarmEmail": "ops@example.org", "flyApps": "acme-runs"})
	if err != nil {
		return nil, err
	}
	settings.Build = build
	sortie, err := stack.New(app, "Sortie", settings)
	if err != nil {
		return nil, err
	}
	mine := awscdk.NewStack(app, jsii.String("Mine"), nil)
	awsevents.NewRule(mine, jsii.String("Failures"), &awsevents.RuleProps{
		EventBus:     awsevents.EventBus_FromEventBusArn(mine, jsii.String("Bus"), &sortie.BusArn),
		EventPattern: &awsevents.EventPattern{DetailType: jsii.Strings("job.failed")},
		Targets:      &[]awsevents.IRuleTarget{awseventstargets.NewSqsQueue(awssqs.NewQueue(mine, jsii.String("Failed"), nil), nil)},
	})
	awscdk.NewCfnOutput(mine, jsii.String("Sortie"), &awscdk.CfnOutputProps{Value: &sortie.URL})
	return app, nil
}

// TestStackInAnotherApp synthesizes an app whose own stack refers to Sortie's stack.
func TestStackInAnotherApp(t *testing.T) {
	t.Parallel()
	out, build := t.TempDir(), placeholders(t, "arm64")
	kernel.Lock()
	defer kernel.Unlock()
	made, err := app(out, build)
	if err != nil {
		t.Fatal(err)
	}
	made.Synth(nil)
	theirs, err := template.Read(filepath.Join(out, "Sortie.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs.Of("Lambda::Function")) == 0 || len(theirs.Of("SNS::Subscription")) != 1 {
		t.Errorf("got %d functions and %d subscriptions", len(theirs.Of("Lambda::Function")), len(theirs.Of("SNS::Subscription")))
	}
	mine, err := template.Read(filepath.Join(out, "Mine.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(mine.Text, "Fn::ImportValue") || len(mine.Of("Events::Rule")) != 1 {
		t.Errorf("got\n%s\nwant a rule on the bus of Sortie", mine.Text)
	}
}
