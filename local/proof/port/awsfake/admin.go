package awsfake

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// CreateTable creates a table with Sortie's schema in the fake or in DynamoDB Local.
func CreateTable(ctx context.Context, cfg aws.Config, name string) error {
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
	client := dynamodb.NewFromConfig(cfg)
	if _, err := client.CreateTable(ctx, in); err != nil {
		return fmt.Errorf("cannot create table %s: %w", name, err)
	}
	return nil
}

func keySchema(partition, sort schema.Key) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &partition.Name, KeyType: types.KeyTypeHash},
		{AttributeName: &sort.Name, KeyType: types.KeyTypeRange},
	}
}

type keyElement struct{ AttributeName, KeyType string }

type createTable struct {
	TableName            string
	BillingMode          string
	AttributeDefinitions []struct{ AttributeName, AttributeType string }
	KeySchema            []keyElement
	// The fake supports the projections KEYS_ONLY and INCLUDE.
	GlobalSecondaryIndexes []struct {
		IndexName  string
		KeySchema  []keyElement
		Projection struct {
			ProjectionType   string
			NonKeyAttributes []string
		}
	}
	StreamSpecification *struct {
		StreamEnabled  bool
		StreamViewType string
	}
}

func (r *createTable) call() (string, bool) { return "", true }

// key returns the partition key and the sort key of a key schema.
func (r *createTable) key(elements []keyElement) (partition, sort schema.Key, err error) {
	if len(elements) != 2 || elements[0].KeyType != "HASH" || elements[1].KeyType != "RANGE" {
		return partition, sort, invalid("the fake wants a partition key and a sort key")
	}
	types := map[string]string{}
	for _, a := range r.AttributeDefinitions {
		types[a.AttributeName] = a.AttributeType
	}
	partition = schema.Key{Name: elements[0].AttributeName, Type: types[elements[0].AttributeName]}
	sort = schema.Key{Name: elements[1].AttributeName, Type: types[elements[1].AttributeName]}
	if partition.Type == "" || sort.Type == "" {
		return partition, sort, invalid("some index key attributes are not defined in AttributeDefinitions")
	}
	return partition, sort, nil
}

func (d *DynamoDB) createTable(_ context.Context, _ Call, r *createTable, _ Fate) (any, error) {
	if d.tables[r.TableName] != nil {
		return nil, refuse("ResourceInUseException", "table already exists: %s", r.TableName)
	}
	partition, sort, err := r.key(r.KeySchema)
	if err != nil {
		return nil, err
	}
	t := &table{name: r.TableName, own: newIndex("", partition, sort, nil), rows: map[[2]string]*row{}}
	for _, x := range r.GlobalSecondaryIndexes {
		group, order, err := r.key(x.KeySchema)
		if err != nil {
			return nil, err
		}
		projected := map[string]bool{partition.Name: true, sort.Name: true, group.Name: true, order.Name: true}
		for _, name := range x.Projection.NonKeyAttributes {
			projected[name] = true
		}
		t.indexes = append(t.indexes, newIndex(x.IndexName, group, order, projected))
	}
	if r.StreamSpecification != nil && r.StreamSpecification.StreamEnabled {
		t.stream = &stream{}
	}
	d.tables[t.name] = t
	return struct{ TableDescription tableDescription }{t.describe()}, nil
}

type tableDescription struct {
	TableName, TableStatus string
	LatestStreamArn        string `json:",omitempty"`
}

func (t *table) describe() tableDescription {
	description := tableDescription{TableName: t.name, TableStatus: "ACTIVE"}
	if t.stream != nil {
		description.LatestStreamArn = streamPrefix + t.name
	}
	return description
}

type describeTable struct{ TableName string }

func (r *describeTable) call() (string, bool) { return "", false }

func (d *DynamoDB) describeTable(_ context.Context, _ Call, r *describeTable, _ Fate) (any, error) {
	t, err := d.table(r.TableName)
	if err != nil {
		return nil, err
	}
	return struct{ Table tableDescription }{t.describe()}, nil
}

type updateTimeToLive struct {
	TableName               string
	TimeToLiveSpecification struct {
		AttributeName string
		Enabled       bool
	}
}

func (r *updateTimeToLive) call() (string, bool) { return "", true }

func (d *DynamoDB) updateTimeToLive(_ context.Context, _ Call, r *updateTimeToLive, _ Fate) (any, error) {
	t, err := d.table(r.TableName)
	if err != nil {
		return nil, err
	}
	t.ttl = ""
	if r.TimeToLiveSpecification.Enabled {
		t.ttl = r.TimeToLiveSpecification.AttributeName
	}
	return struct{ TimeToLiveSpecification any }{r.TimeToLiveSpecification}, nil
}
