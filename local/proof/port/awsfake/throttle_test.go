package awsfake_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// TestPartitionKeysAreThrottled writes and reads until the units of a key are used up. Other
// keys are not affected, and the units are refilled over time.
func TestPartitionKeysAreThrottled(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))
	db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: now, Partition: awsfake.Throughput{WriteUnits: 10, ReadUnits: 20}})
	if err := awsfake.CreateTable(t.Context(), db.AWS(), "t"); err != nil {
		t.Fatal(err)
	}
	client := dynamodb.NewFromConfig(db.AWS(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	key := func(pk string, sk int) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: fmt.Sprint("s", sk)}}
	}
	put := func(pk string) error {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: key(pk, 1)})
		return err
	}
	transact := func(pk string) error {
		items := make([]types.TransactWriteItem, 2)
		for i := range items {
			items[i].Put = &types.Put{TableName: aws.String("t"), Item: key(pk, i)}
		}
		_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: items})
		return err
	}
	get := func(pk string) error {
		_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key(pk, 1), ConsistentRead: aws.Bool(true)})
		return err
	}
	query := func(pk string) error {
		_, err := client.Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("t"), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#pk = :pk"),
			ExpressionAttributeNames:  map[string]string{"#pk": "pk"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: pk}},
		})
		return err
	}
	for name, row := range map[string]struct {
		do   func(pk string) error
		most int // calls per second
	}{"put": {put, 10}, "transaction": {transact, 3}, "get": {get, 20}, "query": {query, 20}} {
		calls := func() (n int) {
			for row.do(name) == nil {
				n++
			}
			return n
		}
		if n := calls(); n != row.most {
			t.Errorf("%s: got %d calls in a second, want %d", name, n, row.most)
		}
		if err := row.do(name + " elsewhere"); err != nil {
			t.Errorf("%s of another key: got %v, want none", name, err)
		}
		now.Advance(time.Second)
		if n := calls(); n < row.most-1 || n > row.most {
			t.Errorf("%s: got %d calls in the next second, want %d", name, n, row.most)
		}
	}
	for transact("transaction") == nil { //nolint:revive // until it is throttled
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](transact("transaction"))
	if !ok || aws.ToString(cancelled.CancellationReasons[0].Code) != "ThrottlingError" {
		t.Errorf("got %v, want a transaction that is cancelled by throttling", cancelled)
	}
	if db.Throttled() == 0 {
		t.Error("got no throttled requests")
	}
}
