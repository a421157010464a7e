package awsfake_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// twins makes each call on two fakes with the same content, on one through the SDK and on the
// other directly. The results must be the same.
type twins struct {
	t           *testing.T
	sdk, direct dynamo.API
}

// both returns twins with an empty table.
func both(t *testing.T, c awsfake.DynamoDBConfig, table string) twins {
	t.Helper()
	sdk, direct := awsfake.NewDynamoDB(c), awsfake.NewDynamoDB(c)
	for _, db := range []*awsfake.DynamoDB{sdk, direct} {
		if err := awsfake.CreateTable(t.Context(), db.AWS(), table); err != nil {
			t.Fatal(err)
		}
	}
	return twins{t, clientOf(sdk.AWS()), direct.Direct()}
}

type clientMethod[In, Out any] func(dynamo.API, context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// compare makes the call on both fakes, compares the results, and returns the result of the
// SDK.
func compare[In, Out any](ctx context.Context, w twins, call clientMethod[In, Out], in *In) (*Out, error) {
	w.t.Helper()
	out, err := call(w.sdk, ctx, in)
	directOut, directErr := call(w.direct, ctx, in)
	if diff := cmp.Diff(out, directOut, sameAnswers...); diff != "" {
		w.t.Errorf("%T: direct answer (-SDK +direct)\n%s", in, diff)
	}
	if code(err) != code(directErr) || (err == nil) != (directErr == nil) {
		w.t.Errorf("%T: got direct error %v, want %v", in, directErr, err)
	}
	for e, d := err, directErr; e != nil && d != nil; e, d = errors.Unwrap(e), errors.Unwrap(d) {
		if fmt.Sprintf("%T", e) != fmt.Sprintf("%T", d) {
			w.t.Errorf("%T: got direct error %T, want %T", in, d, e)
			break
		}
	}
	return out, err
}

// sameAnswers ignores the metadata of the transport and the difference between nil and empty
// collections.
var sameAnswers = []cmp.Option{
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".ResultMetadata" }, cmp.Ignore()),
	cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty(),
}

// GetItem implements dynamo.API.
func (w twins) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return compare(ctx, w, dynamo.API.GetItem, in)
}

// BatchGetItem implements dynamo.API.
func (w twins) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return compare(ctx, w, dynamo.API.BatchGetItem, in)
}

// Query implements dynamo.API.
func (w twins) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return compare(ctx, w, dynamo.API.Query, in)
}

// Scan implements dynamo.API.
func (w twins) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return compare(ctx, w, dynamo.API.Scan, in)
}

// PutItem implements dynamo.API.
func (w twins) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return compare(ctx, w, dynamo.API.PutItem, in)
}

// UpdateItem implements dynamo.API.
func (w twins) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return compare(ctx, w, dynamo.API.UpdateItem, in)
}

// DeleteItem implements dynamo.API.
func (w twins) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return compare(ctx, w, dynamo.API.DeleteItem, in)
}

// TransactWriteItems implements dynamo.API.
func (w twins) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	if in.ClientRequestToken == nil { // each client would generate its own
		in.ClientRequestToken = aws.String(fmt.Sprint(in))
	}
	return compare(ctx, w, dynamo.API.TransactWriteItems, in)
}

// TestDirectCallsAreThoseOfTheSDK makes random calls. Many of them fail by plan, read stale
// data, or have conditions that do not hold.
func TestDirectCallsAreThoseOfTheSDK(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(epoch)
	w := both(t, awsfake.DynamoDBConfig{
		Clock: now, Seed: 3, Lag: time.Second, Stale: 0.5, Partition: awsfake.Throughput{WriteUnits: 200, ReadUnits: 200},
		Plan: awsfake.Seeded(3, 0.2, awsfake.Lost, awsfake.Unsure, awsfake.Throttled, awsfake.Conflicted, awsfake.Partial),
	}, "sortie")
	d, random := dynamoTest{t, w, aws.String("sortie")}, rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same calls each time
	failures := map[string]int{}
	for n := range 2000 {
		now.Advance(time.Duration(random.IntN(300)) * time.Millisecond)
		err := d.random(random, n)
		if _, refused := errors.AsType[smithy.APIError](err); err != nil && !refused {
			failures["connection"]++
		} else {
			failures[code(err)]++
		}
	}
	for _, want := range []string{
		"", "connection", "InternalServerError", "TransactionCanceledException", "ConditionalCheckFailedException", "ThrottlingException", "TransactionInProgressException",
	} {
		if failures[want] == 0 {
			t.Errorf("got no call that ends with %q: %v", want, failures)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.GetItem(ended, &dynamodb.GetItemInput{TableName: d.table, Key: key("a")}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for an ended context, want context.Canceled", err)
	}
}

// random makes a random call.
func (d dynamoTest) random(random *rand.Rand, n int) (err error) {
	one := func() string { return fmt.Sprint(random.IntN(12)) }
	is := with(due(one(), random.IntN(50)), item{"n": number(random.IntN(4)), "l": list(text("x"), number(n))})
	names, values := placeholders("#n :5")
	condition := []string{"#n < :5", "attribute_not_exists(#n)", "#n = :5"}[random.IntN(3)]
	if condition == "attribute_not_exists(#n)" {
		values = nil
	}
	total, all := types.ReturnConsumedCapacityTotal, types.ReturnValuesOnConditionCheckFailureAllOld
	switch random.IntN(8) {
	case 0:
		_, err = d.PutItem(d.Context(), &dynamodb.PutItemInput{
			TableName: d.table, Item: is, ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
			ReturnValuesOnConditionCheckFailure: all, ReturnConsumedCapacity: total, ReturnValues: types.ReturnValueAllOld,
		})
	case 1:
		_, err = d.UpdateItem(d.Context(), &dynamodb.UpdateItemInput{
			TableName: d.table, Key: key(one()), UpdateExpression: aws.String("SET #n = if_not_exists(#n, :5) + :5"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: item{":5": number(5)}, ReturnValues: types.ReturnValueAllNew, ReturnConsumedCapacity: total,
		})
	case 2:
		_, err = d.DeleteItem(d.Context(), &dynamodb.DeleteItemInput{TableName: d.table, Key: key(one()), ReturnConsumedCapacity: total})
	case 3:
		_, err = d.GetItem(d.Context(), &dynamodb.GetItemInput{
			TableName: d.table, Key: key(one()), ConsistentRead: aws.Bool(random.IntN(2) == 0), ReturnConsumedCapacity: total,
			ProjectionExpression: aws.String("#n"), ExpressionAttributeNames: names,
		})
	case 4:
		_, err = d.BatchGetItem(d.Context(), &dynamodb.BatchGetItemInput{ReturnConsumedCapacity: total, RequestItems: map[string]types.KeysAndAttributes{
			*d.table: {Keys: []map[string]types.AttributeValue{key("1"), key("2"), key("3")}, ConsistentRead: aws.Bool(random.IntN(2) == 0)},
		}})
	case 5:
		_, err = d.Query(d.Context(), &dynamodb.QueryInput{
			TableName: d.table, KeyConditionExpression: aws.String("#pk = :a"), ExpressionAttributeNames: map[string]string{"#pk": "pk"},
			ExpressionAttributeValues: item{":a": text("a")}, Limit: aws.Int32(int32(1 + random.IntN(9))), ScanIndexForward: aws.Bool(random.IntN(2) == 0), //nolint:gosec // small
			ReturnConsumedCapacity: total,
		})
	case 6:
		_, err = d.Scan(d.Context(), &dynamodb.ScanInput{TableName: d.table, IndexName: aws.String("due"), ReturnConsumedCapacity: total})
	case 7:
		token := fmt.Sprint("token", n/40, is)
		for range 2 {
			_, err = d.TransactWriteItems(d.Context(), &dynamodb.TransactWriteItemsInput{
				ClientRequestToken: &token, ReturnConsumedCapacity: total, TransactItems: []types.TransactWriteItem{
					{Put: &types.Put{TableName: d.table, Item: is}},
					{Update: &types.Update{
						TableName: d.table, Key: key("x"), UpdateExpression: aws.String("SET #n = :5"),
						ExpressionAttributeNames: names, ExpressionAttributeValues: item{":5": number(n)},
					}},
					{Delete: &types.Delete{TableName: d.table, Key: key("y")}},
					{ConditionCheck: &types.ConditionCheck{
						TableName: d.table, Key: key("z"), ConditionExpression: &condition, ExpressionAttributeNames: names,
						ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: all,
					}},
				},
			})
			if err == nil {
				break
			}
		}
	}
	return err
}

// TestDirectCallsHaveAllFields sets each field of each request. A field that a direct call does
// not support must reach the fake through the SDK.
func TestDirectCallsHaveAllFields(t *testing.T) {
	t.Parallel()
	table := "sortie"
	w := both(t, awsfake.DynamoDBConfig{Clock: clock.NewVirtual(epoch)}, table)
	names, values := map[string]string{"#n": "n"}, item{":5": number(5)}
	for _, row := range []struct {
		in   any
		call func(in any) error
	}{
		{dynamodb.GetItemInput{TableName: &table, Key: key("x")}, field(w, dynamo.API.GetItem)},
		{dynamodb.PutItemInput{TableName: &table, Item: key("x")}, field(w, dynamo.API.PutItem)},
		{dynamodb.DeleteItemInput{TableName: &table, Key: key("x")}, field(w, dynamo.API.DeleteItem)},
		{dynamodb.UpdateItemInput{TableName: &table, Key: key("x")}, field(w, dynamo.API.UpdateItem)},
		{dynamodb.ScanInput{TableName: &table}, field(w, dynamo.API.Scan)},
		{dynamodb.QueryInput{
			TableName: &table, KeyConditionExpression: aws.String("#pk = :5"), ExpressionAttributeNames: map[string]string{"#pk": "pk"},
			ExpressionAttributeValues: item{":5": text("a")},
		}, field(w, dynamo.API.Query)},
		{dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: {Keys: []map[string]types.AttributeValue{key("x")}}}}, field(w, dynamo.API.BatchGetItem)},
		{dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String("token"), TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: &table, Item: key("x")}}},
		}, field(w, dynamo.API.TransactWriteItems)},
	} {
		kind := reflect.TypeOf(row.in)
		if err := row.call(row.in); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
		for i := range kind.NumField() {
			if !kind.Field(i).IsExported() {
				continue
			}
			changed := reflect.New(kind).Elem()
			changed.Set(reflect.ValueOf(row.in))
			changed.Field(i).SetZero()
			_ = row.call(changed.Interface())
			if fill(changed.Field(i), names, values) {
				_ = row.call(changed.Interface())
			}
		}
	}
}

// field returns a function that makes a call of twins with its input as any.
func field[In, Out any](w twins, call clientMethod[In, Out]) func(any) error {
	return func(in any) error {
		request := in.(In) //nolint:forcetypeassert // the caller pairs them
		if transaction, ok := any(&request).(*dynamodb.TransactWriteItemsInput); ok && transaction.ClientRequestToken == nil {
			return nil // each client would generate its own
		}
		_, err := compare(w.t.Context(), w, call, &request)
		return err
	}
}

// fill sets a field to a value other than its zero value. It returns false for a field of
// structs.
func fill(v reflect.Value, names map[string]string, values item) bool {
	switch is := v.Addr().Interface().(type) {
	case **string:
		*is = aws.String("#n")
	case **bool:
		*is = aws.Bool(true)
	case **int32:
		*is = aws.Int32(1)
	case *[]string:
		*is = []string{"n"}
	case *map[string]string:
		*is = names
	case *map[string]types.AttributeValue:
		*is = values
	case *map[string]types.Condition:
		*is = map[string]types.Condition{"n": {ComparisonOperator: types.ComparisonOperatorNull}}
	case *map[string]types.ExpectedAttributeValue:
		*is = map[string]types.ExpectedAttributeValue{"n": {Exists: aws.Bool(false)}}
	case *map[string]types.AttributeValueUpdate:
		*is = map[string]types.AttributeValueUpdate{"n": {Action: types.AttributeActionDelete}}
	default:
		if v.Kind() != reflect.String {
			return false
		}
		v.SetString("NONE")
	}
	return true
}
