package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/sortie-dev/sortie/local/sortie/stage"
)

// find reads the stack. It returns nil if the stack does not exist.
func (e *exam) find(ctx context.Context) (*stage.Stage, error) {
	if e.callerErr != nil {
		return nil, e.callerErr
	}
	found, err := stage.Find(ctx, e.AWS, e.Stage, e.Clock)
	if errors.Is(err, stage.ErrNoStack) {
		return nil, nil //nolint:nilnil // nothing is deployed
	}
	return found, err
}

// The statuses of stacks (CloudFormation User Guide, "Stack status codes").
var (
	// works are the statuses of a stack whose resources match its template.
	works = []string{"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "IMPORT_COMPLETE"}
	// lost are the statuses of a stack that can only be deleted.
	lost = []string{"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED"}
	// kept are the statuses of a stack that a failed deployment left unchanged.
	kept = []string{"UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", "IMPORT_ROLLBACK_COMPLETE"}
	// waits maps status prefixes of changing stacks to the AWS CLI's waiters.
	waits = []struct{ status, waiter string }{
		{"CREATE_", "stack-create-complete"},
		{"UPDATE_ROLLBACK_", "stack-rollback-complete"},
		{"UPDATE_", "stack-update-complete"},
		{"ROLLBACK_", "stack-rollback-complete"},
		{"DELETE_", "stack-delete-complete"},
		{"IMPORT_", "stack-import-complete"},
	}
)

// serves reports whether the stack exists with its resources.
func (e *exam) serves() bool {
	if e.deployed == nil {
		return false
	}
	status := e.deployed.Status
	return !slices.Contains(lost, status) && !strings.HasPrefix(status, "DELETE_") &&
		!strings.HasPrefix(status, "CREATE_IN") && !strings.HasPrefix(status, "ROLLBACK_")
}

// stack checks that the stage is deployed and that its last deployment succeeded.
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
	detail := name + " is " + e.deployed.Status
	switch status := e.deployed.Status; {
	case slices.Contains(works, status):
		return []Finding{ok(check, "%s", detail)}
	case slices.Contains(lost, status):
		remove := "aws cloudformation delete-stack" + at + " && aws cloudformation wait stack-delete-complete" + at + " && " + e.deploy()
		if e.deployed.Protected {
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
		if strings.HasPrefix(e.deployed.Status, w.status) {
			return []Finding{missing(check, detail, "aws cloudformation wait "+w.waiter+at)}
		}
	}
	return []Finding{wrong(check, detail, "aws cloudformation describe-stack-events"+at)}
}

// cause returns the first failure of the last deployment, which caused the others.
func (e *exam) cause(ctx context.Context) string {
	events, err := cloudformation.NewFromConfig(e.AWS).DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: aws.String("sortie-" + e.Stage)})
	if err != nil {
		return ""
	}
	first := ""
	for _, event := range events.StackEvents { // the latest event comes first
		status, why := string(event.ResourceStatus), aws.ToString(event.ResourceStatusReason)
		own := aws.ToString(event.PhysicalResourceId) == e.deployed.ID
		if own && (status == "CREATE_IN_PROGRESS" || status == "UPDATE_IN_PROGRESS") {
			break
		}
		if !own && strings.HasSuffix(status, "_FAILED") && !strings.Contains(why, "cancelled") {
			first = fmt.Sprintf(": %s: %s", aws.ToString(event.LogicalResourceId), strings.Join(strings.Fields(why), " "))
		}
	}
	return first
}
