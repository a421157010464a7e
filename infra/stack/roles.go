package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

// document is a policy with exactly the statements.
func document(allow []statement) awsiam.PolicyDocument {
	all := make([]awsiam.PolicyStatement, 0, len(allow))
	for _, s := range allow {
		all = append(all, awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions: texts(s.actions), Resources: texts(s.resources), Conditions: s.conditions(),
		}))
	}
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &all, Minimize: jsii.Bool(false)})
}

// conditions are those of a statement. A request of several items needs all of them under
// the partitions.
func (s statement) conditions() *map[string]any {
	if len(s.partitions) == 0 {
		return nil
	}
	return &map[string]any{"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": s.partitions}}
}

// newRole adds a role for the service with exactly the statements.
func (b *builder) newRole(id, service string, allow []statement) awsiam.Role {
	return awsiam.NewRole(b.stack, jsii.String(id), &awsiam.RoleProps{
		AssumedBy:      awsiam.NewServicePrincipal(jsii.String(service), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"allow": document(allow)},
	})
}
