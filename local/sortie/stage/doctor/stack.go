package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/sortie-dev/sortie/local/sortie/template"
)

// stack is the stack of the stage in AWS.
type stack struct {
	id, status string
	// protected is true if its deletion needs a word.
	protected bool
	outputs   map[string]string
	template  template.Template
}

// find reads the stack; it returns nil if the stack does not exist.
func (e *exam) find(ctx context.Context) (*stack, error) {
	if e.callerErr != nil {
		return nil, e.callerErr
	}
	client, name := cloudformation.NewFromConfig(e.AWS), "sortie-"+e.Stage
	described, err := client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if code(err) == "ValidationError" || err == nil && len(described.Stacks) == 0 { // of a well-formed name: it does not exist
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := described.Stacks[0]
	if found.StackStatus == types.StackStatusReviewInProgress {
		return nil, nil
	}
	s := &stack{aws.ToString(found.StackId), string(found.StackStatus), aws.ToBool(found.EnableTerminationProtection), map[string]string{}, template.Template{}}
	for _, output := range found.Outputs {
		s.outputs[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	text, err := client.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &name, TemplateStage: types.TemplateStageOriginal})
	if err != nil {
		return nil, err
	}
	s.template, err = template.Parse(aws.ToString(text.TemplateBody))
	return s, err
}

// The statuses of stacks (CloudFormation User Guide, "Stack status codes").
var (
	// works are those of a stack whose resources are those of its template.
	works = []string{"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "IMPORT_COMPLETE"}
	// lost are those of a stack that can only be deleted.
	lost = []string{"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED"}
	// kept are those of a stack that a failed deployment left as it was.
	kept = []string{"UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", "IMPORT_ROLLBACK_COMPLETE"}
	// waits are the waiters of stacks that change, by the beginning of their status.
	waits = []struct{ status, waiter string }{
		{"CREATE_", "stack-create-complete"},
		{"UPDATE_ROLLBACK_", "stack-rollback-complete"},
		{"UPDATE_", "stack-update-complete"},
		{"ROLLBACK_", "stack-rollback-complete"},
		{"DELETE_", "stack-delete-complete"},
		{"IMPORT_", "stack-import-complete"},
	}
)

// serves reports whether the stack has its resources.
func (s *stack) serves() bool {
	return s != nil && !slices.Contains(lost, s.status) && !strings.HasPrefix(s.status, "DELETE_") &&
		!strings.HasPrefix(s.status, "CREATE_IN") && !strings.HasPrefix(s.status, "ROLLBACK_")
}

// stack checks that the stage is deployed and that its last deployment was successful.
func (e *exam) stack(ctx context.Context) []Finding {
	const check = "stack"
	name := "sortie-" + e.Stage
	if f := e.unreached(check); f != nil {
		return f
	}
	if e.deployedErr != nil {
		return []Finding{e.unmade(check, "cloudformation:DescribeStacks", e.deployedErr)}
	}
	if e.deployed == nil {
		return []Finding{missing(check, name+" is not deployed in "+e.caller.account+", "+e.AWS.Region, e.deploy())}
	}
	at := " --stack-name " + name + " --region " + e.AWS.Region
	detail := name + " is " + e.deployed.status
	switch status := e.deployed.status; {
	case slices.Contains(works, status):
		return []Finding{ok(check, "%s", detail)}
	case slices.Contains(lost, status):
		remove := "aws cloudformation delete-stack" + at + " && aws cloudformation wait stack-delete-complete" + at + " && " + e.deploy()
		if e.deployed.protected {
			remove = "aws cloudformation update-termination-protection --no-enable-termination-protection" + at + " && " + remove
		}
		return []Finding{wrong(check, detail+e.cause(ctx), "correct the cause, then "+remove)}
	case slices.Contains(kept, status):
		return []Finding{wrong(check, detail+", so the last deployment had no effect"+e.cause(ctx), "correct the cause, then "+e.deploy())}
	case status == "UPDATE_ROLLBACK_FAILED":
		return []Finding{wrong(check, detail+e.cause(ctx), "correct the cause, then aws cloudformation continue-update-rollback"+at)}
	case status == "UPDATE_FAILED":
		return []Finding{wrong(check, detail+e.cause(ctx), "aws cloudformation rollback-stack"+at+", then "+e.deploy())}
	}
	for _, w := range waits {
		if strings.HasPrefix(e.deployed.status, w.status) {
			return []Finding{missing(check, detail, "aws cloudformation wait "+w.waiter+at)}
		}
	}
	return []Finding{wrong(check, detail, "aws cloudformation describe-stack-events"+at)}
}

// cause is the first failure of the last deployment, which made the others fail.
func (e *exam) cause(ctx context.Context) string {
	events, err := cloudformation.NewFromConfig(e.AWS).DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: aws.String("sortie-" + e.Stage)})
	if err != nil {
		return ""
	}
	first := ""
	for _, event := range events.StackEvents { // the last one is first
		status, why := string(event.ResourceStatus), aws.ToString(event.ResourceStatusReason)
		own := aws.ToString(event.PhysicalResourceId) == e.deployed.id
		if own && (status == "CREATE_IN_PROGRESS" || status == "UPDATE_IN_PROGRESS") {
			break
		}
		if !own && strings.HasSuffix(status, "_FAILED") && !strings.Contains(why, "cancelled") {
			first = fmt.Sprintf(": %s: %s", aws.ToString(event.LogicalResourceId), strings.Join(strings.Fields(why), " "))
		}
	}
	return first
}
