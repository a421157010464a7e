package stack

import (
	"regexp"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// table identifies the table for other resources.
type table struct{ name, arn, stream string }

// indexed returns the ARNs of the named indexes.
func (t table) indexed(names ...string) []string {
	var arns []string
	for _, name := range names {
		arns = append(arns, t.arn+"/index/"+name)
	}
	return arns
}

// streamName matches the ARN of a table's stream: the ARN of the table, its name, and the time
// at which the stream was created.
var streamName = regexp.MustCompile(`^(arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/([A-Za-z0-9_.-]{3,255}))/stream/.+$`)

// addTable adds the table that its adapter describes, or refers to the restored table. The
// table is encrypted with DynamoDB's own key, which is free. It has point-in-time recovery for
// 35 days.
func (b *builder) addTable() {
	if parts := streamName.FindStringSubmatch(b.settings.TableStream); parts != nil {
		b.table = table{name: parts[2], arn: parts[1], stream: parts[0]}
		return
	}
	made := awsdynamodb.NewCfnTable(b.stack, jsii.String("Table"), &awsdynamodb.CfnTableProps{
		BillingMode:            jsii.String("PAY_PER_REQUEST"),
		AttributeDefinitions:   attributes(),
		KeySchema:              keySchema(schema.Partition, schema.Sort),
		GlobalSecondaryIndexes: indexes(),
		PointInTimeRecoverySpecification: &awsdynamodb.CfnTable_PointInTimeRecoverySpecificationProperty{
			PointInTimeRecoveryEnabled: true,
		},
		TimeToLiveSpecification: &awsdynamodb.CfnTable_TimeToLiveSpecificationProperty{
			Enabled: true, AttributeName: jsii.String(schema.TTL),
		},
		StreamSpecification: &awsdynamodb.CfnTable_StreamSpecificationProperty{
			StreamViewType: jsii.String(schema.StreamView),
		},
		DeletionProtectionEnabled: b.settings.Retain,
	})
	policy := b.removal()
	if b.settings.Retain {
		// A rollback cannot delete a protected table and would fail. With this policy, a failed
		// first deployment leaves the table. It is empty, and no later deployment needs its
		// name.
		policy = awscdk.RemovalPolicy_RETAIN
	}
	made.ApplyRemovalPolicy(policy, nil)
	b.table = table{name: *made.Ref(), arn: *made.AttrArn(), stream: *made.AttrStreamArn()}
}

func attributes() []any {
	var all []any
	for _, key := range schema.Attributes() {
		all = append(all, &awsdynamodb.CfnTable_AttributeDefinitionProperty{
			AttributeName: jsii.String(key.Name), AttributeType: jsii.String(key.Type),
		})
	}
	return all
}

func keySchema(partition, sort schema.Key) []any {
	return []any{
		&awsdynamodb.CfnTable_KeySchemaProperty{AttributeName: jsii.String(partition.Name), KeyType: jsii.String("HASH")},
		&awsdynamodb.CfnTable_KeySchemaProperty{AttributeName: jsii.String(sort.Name), KeyType: jsii.String("RANGE")},
	}
}

func indexes() []any {
	var all []any
	for _, index := range schema.Indexes() {
		projection := &awsdynamodb.CfnTable_ProjectionProperty{ProjectionType: jsii.String("KEYS_ONLY")}
		if len(index.Include) > 0 {
			projection = &awsdynamodb.CfnTable_ProjectionProperty{
				ProjectionType: jsii.String("INCLUDE"), NonKeyAttributes: texts(index.Include),
			}
		}
		all = append(all, &awsdynamodb.CfnTable_GlobalSecondaryIndexProperty{
			IndexName: jsii.String(index.Name), KeySchema: keySchema(index.Partition, index.Sort), Projection: projection,
		})
	}
	return all
}
