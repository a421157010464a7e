package stack

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

// document returns a policy with exactly the statements. It contains a statement once if
// several uses of a function have it.
func document(allow []statement) awsiam.PolicyDocument {
	all := make([]awsiam.PolicyStatement, 0, len(allow))
	for i, s := range allow {
		if slices.ContainsFunc(allow[:i], s.equal) {
			continue
		}
		all = append(all, awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions: texts(s.actions), Resources: texts(s.resources), Conditions: s.conditions(),
		}))
	}
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &all, Minimize: jsii.Bool(false)})
}

// conditions returns the conditions of a statement. A request for several items needs all of
// them in the permitted partitions.
func (s statement) conditions() *map[string]any {
	if len(s.partitions) == 0 {
		return nil
	}
	return &map[string]any{"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": s.partitions}}
}

// equal reports whether other has the same permissions.
func (s statement) equal(other statement) bool {
	return slices.Equal(s.actions, other.actions) && slices.Equal(s.resources, other.resources) && slices.Equal(s.partitions, other.partitions)
}

// newRole adds a role for the service with exactly the statements.
func (b *builder) newRole(id, service string, allow []statement) awsiam.Role {
	return awsiam.NewRole(b.stack, jsii.String(id), &awsiam.RoleProps{
		AssumedBy:      awsiam.NewServicePrincipal(jsii.String(service), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"allow": document(allow)},
	})
}
