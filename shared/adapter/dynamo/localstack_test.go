//go:build localstack

package dynamo_test

import (
	"crypto/rand"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest"
	"github.com/sortie-dev/sortie/shared/porttest/awstest"
)

func TestStoreOnDynamoDBLocal(t *testing.T) {
	t.Parallel()
	porttest.Store(t, func(t *testing.T) port.Store { return open(t, dynamo.Config{}) })
}

// open returns a store on a new table.
func open(t testing.TB, c dynamo.Config) *dynamo.Store {
	t.Helper()
	cfg := awstest.DynamoDB(t)
	c.Table, c.Clock = table(t, cfg), clock.System{}
	s, err := dynamo.Open(cfg, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// table creates a table with the schema.
func table(t testing.TB, cfg aws.Config) string {
	t.Helper()
	client := dynamodb.NewFromConfig(cfg)
	name := "sortie-" + rand.Text()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:           keySchema(schema.Partition, schema.Sort),
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: schema.StreamView},
	}
	for _, a := range schema.Attributes() {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: &a.Name, AttributeType: types.ScalarAttributeType(a.Type),
		})
	}
	for _, index := range schema.Indexes() {
		projection := &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
		if len(index.Include) > 0 {
			projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: index.Include}
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &index.Name, KeySchema: keySchema(index.Partition, index.Sort), Projection: projection,
		})
	}
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return name
}

func keySchema(partition, sort schema.Key) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &partition.Name, KeyType: types.KeyTypeHash},
		{AttributeName: &sort.Name, KeyType: types.KeyTypeRange},
	}
}
