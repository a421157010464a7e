package dynamo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

type item = map[string]types.AttributeValue

// meter is a client that computes the write units of each request from the
// items before and after it. For single items DynamoDB Local reports the same
// number; for transactions it reports four times the units of their total size.
type meter struct {
	dynamo.API
	*testing.T
	table    string
	wru, rru float64
	// keys has the write units by partition key, if not nil.
	keys map[string]float64
}

func (m *meter) take() (wru, rru float64) {
	wru, rru, m.wru, m.rru = m.wru, m.rru, 0, 0
	return wru, rru
}

// consumed is dynamo.Config.Consumed. The reported units of reads are used
// unchanged.
func (m *meter) consumed(_ string, _, rru float64) { m.rru += rru }

func (m *meter) read(key item) item {
	m.Helper()
	out, err := m.API.GetItem(m.Context(), &dynamodb.GetItemInput{TableName: &m.table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		m.Fatal(err)
	}
	return out.Item
}

func keyOf(is item) item {
	return item{schema.Partition.Name: is[schema.Partition.Name], schema.Sort.Name: is[schema.Sort.Name]}
}

// around counts the write units of do for the items with these keys.
func (m *meter) around(times float64, keys []item, do func()) (counted float64) {
	m.Helper()
	before := make([]item, len(keys))
	for i, key := range keys {
		before[i] = m.read(key)
	}
	do()
	for i, key := range keys {
		own := times * units.Written(before[i], m.read(key), size)
		counted += own
		if pk, ok := key[schema.Partition.Name].(*types.AttributeValueMemberS); ok && m.keys != nil {
			m.keys[pk.Value] += own
		}
	}
	m.wru += counted
	return counted
}

// alone counts a single write and compares the result with the database's
// report.
func (m *meter) alone(key item, do func() *types.ConsumedCapacity) {
	m.Helper()
	var reported *types.ConsumedCapacity
	counted := m.around(1, []item{key}, func() { reported = do() })
	if reported != nil && *reported.CapacityUnits != counted {
		m.Errorf("%v: got %v units, the database reports %v", key, counted, *reported.CapacityUnits)
	}
}

func (m *meter) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.PutItemOutput, err error) {
	m.alone(keyOf(in.Item), func() *types.ConsumedCapacity {
		if out, err = m.API.PutItem(ctx, in, o...); err != nil {
			return nil
		}
		return out.ConsumedCapacity
	})
	return out, err
}

func (m *meter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.UpdateItemOutput, err error) {
	m.alone(in.Key, func() *types.ConsumedCapacity {
		if out, err = m.API.UpdateItem(ctx, in, o...); err != nil {
			return nil
		}
		return out.ConsumedCapacity
	})
	return out, err
}

func (m *meter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (out *dynamodb.TransactWriteItemsOutput, err error) {
	var keys []item
	for _, each := range in.TransactItems {
		switch {
		case each.Put != nil:
			keys = append(keys, keyOf(each.Put.Item))
		case each.Update != nil:
			keys = append(keys, each.Update.Key)
		case each.Delete != nil:
			keys = append(keys, each.Delete.Key)
		default:
			keys = append(keys, each.ConditionCheck.Key)
		}
	}
	m.around(units.Transaction, keys, func() { out, err = m.API.TransactWriteItems(ctx, in, o...) })
	return out, err
}

// size returns the size of a value in bytes.
func size(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return units.Number(v.Value)
	case *types.AttributeValueMemberL:
		total := 3
		for _, each := range v.Value {
			total += 1 + size(each)
		}
		return total
	}
	panic(fmt.Sprintf("unsupported attribute value %T", v))
}
