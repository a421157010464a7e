//go:build localstack

package dynamo_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

type item = map[string]types.AttributeValue

// meter is a client that counts the write units of each request by the rules of
// the Amazon DynamoDB Developer Guide ("Read and write operations", "Item sizes
// and formats"), from the items before and after. What DynamoDB Local tells about
// single items agrees with it; about transactions it tells another number, from
// the bytes of them all, four times.
//
// An entry of an index that changes in a transaction is counted twice, as an item
// is. The guide says nothing about it; this is the worse case.
type meter struct {
	dynamo.API
	*testing.T
	table    string
	wru, rru float64
	// keys has the write units of items, by partition key, where it is not nil.
	keys map[string]float64
}

func (m *meter) take() (wru, rru float64) {
	wru, rru, m.wru, m.rru = m.wru, m.rru, 0, 0
	return wru, rru
}

// consumed is dynamo.Config.Consumed: what is told about reads is taken as it is.
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

// around counts what do writes to the items with these keys.
func (m *meter) around(times float64, keys []item, do func()) (units float64) {
	m.Helper()
	before := make([]item, len(keys))
	for i, key := range keys {
		before[i] = m.read(key)
	}
	do()
	for i, key := range keys {
		own := times * written(before[i], m.read(key))
		units += own
		if pk, ok := key[schema.Partition.Name].(*types.AttributeValueMemberS); ok && m.keys != nil {
			m.keys[pk.Value] += own
		}
	}
	m.wru += units
	return units
}

// alone counts a single write, and holds what the database tells to it.
func (m *meter) alone(key item, do func() *types.ConsumedCapacity) {
	m.Helper()
	var told *types.ConsumedCapacity
	units := m.around(1, []item{key}, func() { told = do() })
	if told != nil && *told.CapacityUnits != units {
		m.Errorf("%v: counted %v units, the database tells %v", key, units, *told.CapacityUnits)
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
	m.around(2, keys, func() { out, err = m.API.TransactWriteItems(ctx, in, o...) })
	return out, err
}

// written is what it costs to make one item of another, with the indexes.
func written(before, after item) float64 {
	units := max(kilobytes(before), kilobytes(after), 1)
	for _, index := range schema.Indexes() {
		was, is := entry(index, before), entry(index, after)
		switch {
		case reflect.DeepEqual(was, is):
		case was != nil && is != nil && !moved(index, was, is):
			units++
		default:
			units += kilobytes(was) + kilobytes(is)
		}
	}
	return units
}

// entry is the item as the index has it, nil where it does not.
func entry(index schema.Index, is item) item {
	has := keyOf(is)
	for _, name := range append([]string{index.Partition.Name, index.Sort.Name}, index.Include...) {
		if v, ok := is[name]; ok {
			has[name] = v
		}
	}
	if has[index.Partition.Name] == nil || has[index.Sort.Name] == nil {
		return nil
	}
	return maps.Clone(has)
}

func moved(index schema.Index, a, b item) bool {
	return !reflect.DeepEqual(a[index.Partition.Name], b[index.Partition.Name]) || !reflect.DeepEqual(a[index.Sort.Name], b[index.Sort.Name])
}

func kilobytes(is item) float64 {
	total := 0
	for name, v := range is {
		total += len(name) + size(v)
	}
	return float64((total + 1023) / 1024)
}

func size(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return (len(bytes.Trim([]byte(v.Value), "-0"))+1)/2 + 1
	case *types.AttributeValueMemberL:
		total := 3
		for _, each := range v.Value {
			total += 1 + size(each)
		}
		return total
	}
	panic(fmt.Sprintf("how large is a %T?", v))
}
