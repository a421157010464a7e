package stage

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// ErrNoStack is returned if the stage is not deployed in the account and region.
var ErrNoStack = errors.New("not deployed in this account and region")

// Stage is a deployed stage.
type Stage struct {
	Name string
	// Template is the template deployed last.
	Template template.Template
	// Outputs are the outputs of the stack by name.
	Outputs map[string]string
	// ID is the ARN of the stack. Status is its status, such as CREATE_COMPLETE.
	ID, Status string
	// Protected means that the deletion of the stack must be confirmed.
	Protected bool

	cfg   aws.Config
	clock clock.Clock
}

// Find returns the stage with that name, or ErrNoStack if it is not deployed.
func Find(ctx context.Context, cfg aws.Config, name string, c clock.Clock) (*Stage, error) {
	stack := "sortie-" + name
	client := cloudformation.NewFromConfig(cfg)
	described, err := client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", stack, absent(err))
	}
	s := &Stage{Name: name, Outputs: map[string]string{}, cfg: cfg, clock: c}
	for _, found := range described.Stacks {
		if found.StackStatus == types.StackStatusReviewInProgress {
			return nil, fmt.Errorf("%s: %w", stack, ErrNoStack)
		}
		s.ID, s.Status, s.Protected = aws.ToString(found.StackId), string(found.StackStatus), aws.ToBool(found.EnableTerminationProtection)
		for _, output := range found.Outputs {
			s.Outputs[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
		}
	}
	text, err := client.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &stack, TemplateStage: types.TemplateStageOriginal})
	if err != nil {
		return nil, fmt.Errorf("cannot read the template of %s: %w", stack, absent(err))
	}
	s.Template, err = template.Parse(aws.ToString(text.TemplateBody))
	return s, err
}

// absent converts CloudFormation's error for an unknown stack to ErrNoStack. The name is known
// to be well-formed.
func absent(err error) error {
	if refused, ok := errors.AsType[smithy.APIError](err); ok && refused.ErrorCode() == "ValidationError" {
		return ErrNoStack
	}
	return err
}

// output returns an output that every release has. It returns an error if the deployed stack
// has no such output.
func (s *Stage) output(name string) (string, error) {
	if value := s.Outputs[name]; value != "" {
		return value, nil
	}
	return "", fmt.Errorf("sortie-%s has no output %s: deploy it again", s.Name, name)
}

// pause waits for pollInterval, or returns the error of ctx.
func (s *Stage) pause(ctx context.Context) error {
	fired, stop := s.clock.NewTimer(pollInterval)
	defer stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-fired:
		return nil
	}
}

// physical lists the physical names of the stack's resources of a type.
func (s *Stage) physical(ctx context.Context, kind string) (names []string, err error) {
	client := cloudformation.NewFromConfig(s.cfg)
	for _, r := range s.Template.Of(kind) {
		found, err := client.DescribeStackResource(ctx, &cloudformation.DescribeStackResourceInput{
			StackName: aws.String("sortie-" + s.Name), LogicalResourceId: &r.ID,
		})
		if err != nil {
			return nil, fmt.Errorf("cannot find the resource %s: %w", r.ID, err)
		}
		if found.StackResourceDetail.ResourceStatus != types.ResourceStatusDeleteComplete {
			names = append(names, aws.ToString(found.StackResourceDetail.PhysicalResourceId))
		}
	}
	return names, nil
}
