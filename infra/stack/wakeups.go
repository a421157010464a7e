package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/jsii-runtime-go"
)

// wakeUps identifies the schedules of jobs for other resources.
type wakeUps struct {
	// group is the name of the schedule group. role is the ARN of the role that invokes fire.
	// fire is the function that fires a job.
	group, role, fire string
}

// The limits for retries of a wake-up that Lambda has accepted. After them the sweep fires the
// job.
const (
	fireRetries = 2
	fireMaxAge  = 300
)

// addWakeUps adds the group of the jobs' schedules and the role of their target. Deleting the
// group deletes the schedules. The ARN of the target is built from names, because the variables
// of the function itself contain it.
func (b *builder) addWakeUps() {
	group := awsscheduler.NewCfnScheduleGroup(b.stack, jsii.String("JobSchedules"), &awsscheduler.CfnScheduleGroupProps{Name: jsii.String(b.name("jobs"))})
	b.wakes.group = *group.Ref()
	b.wakes.fire = b.arn("lambda", "function", b.name("fire"), awscdk.ArnFormat_COLON_RESOURCE_NAME)
	if b.settings.Gradual {
		b.wakes.fire += ":" + live
	}
	b.wakes.role = *b.newRole("RoleWake", "scheduler.amazonaws.com", []statement{
		{actions: []string{"lambda:InvokeFunction"}, resources: []string{b.wakes.fire}},
		{actions: []string{"sqs:SendMessage"}, resources: []string{b.dead.arn}},
	}).RoleArn()
}

// wakesGrant returns the grant of a function that sets the wake-ups of jobs.
func (b *builder) wakesGrant() grant {
	return grant{map[string]string{
		"SORTIE_SCHEDULE_GROUP": b.wakes.group, "SORTIE_FIRE": b.wakes.fire, "SORTIE_WAKE_ROLE": b.wakes.role, "SORTIE_DEAD_LETTERS": b.dead.arn,
	}, []statement{
		{
			actions:   []string{"scheduler:CreateSchedule", "scheduler:DeleteSchedule", "scheduler:UpdateSchedule"},
			resources: []string{b.arn("scheduler", "schedule", b.wakes.group+"/*", awscdk.ArnFormat_SLASH_RESOURCE_NAME)},
		},
		{actions: []string{"iam:PassRole"}, resources: []string{b.wakes.role}},
	}}
}

// addFire sets the retries and the destination for failed wake-ups.
func (b *builder) addFire() {
	b.invoked("fire", "FireInvoke", &awslambda.CfnEventInvokeConfigProps{
		MaximumRetryAttempts: num(fireRetries), MaximumEventAgeInSeconds: num(fireMaxAge),
		DestinationConfig: &awslambda.CfnEventInvokeConfig_DestinationConfigProperty{
			OnFailure: &awslambda.CfnEventInvokeConfig_OnFailureProperty{Destination: jsii.String(b.dead.arn)},
		},
	})
}
