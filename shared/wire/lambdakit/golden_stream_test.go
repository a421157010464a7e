package lambdakit_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// empty is a table without items that records the items that are put.
type empty struct {
	dynamo.API
	put []map[string]types.AttributeValue
}

func (e *empty) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{}, nil
}

func (e *empty) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	e.put = append(e.put, in.Item)
	return &dynamodb.PutItemOutput{}, nil
}

func (e *empty) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, item := range in.TransactItems {
		if item.Put != nil {
			e.put = append(e.put, item.Put.Item)
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// streamOf returns the event of the table's stream for the creation of a run. The record has
// the present format of the store.
func streamOf(t *testing.T, r run.Run) any {
	t.Helper()
	table := &empty{}
	store, err := dynamo.New(table, dynamo.Config{Table: "sortie-dev", Clock: clock.NewVirtual(apitest.Began)})
	if err != nil {
		t.Fatal(err)
	}
	accepted := run.Event{
		ID: "01KDYPXW5F00000000000000AA", Seq: 1, Type: run.EventAccepted, At: r.CreatedAt, From: "", State: run.Pending, Attempt: 1,
	}
	if _, err := store.Create(t.Context(), port.Write{Run: r, Events: []run.Event{accepted}}, nil); err != nil {
		t.Fatal(err)
	}
	var records []any
	for i, item := range table.put {
		image := map[string]any{}
		for name, value := range item {
			image[name] = streamValue(t, value)
		}
		records = append(records, map[string]any{
			"eventID": "5b1c0d2e3f405162738495a6b7c8d9e0", "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
			"awsRegion":      "eu-central-1",
			"eventSourceARN": "arn:aws:dynamodb:eu-central-1:210987654321:table/sortie-dev/stream/2026-01-02T03:04:05.000",
			"dynamodb": map[string]any{
				"ApproximateCreationDateTime": apitest.Began.Unix(), "SequenceNumber": "17000000000000000000" + string(rune('1'+i)), "SizeBytes": 212,
				"StreamViewType": "NEW_IMAGE", "Keys": map[string]any{"pk": image["pk"], "sk": image["sk"]}, "NewImage": image,
			},
		})
	}
	return map[string]any{"Records": records}
}

// streamValue is a value in the stream's JSON.
func streamValue(t *testing.T, value types.AttributeValue) any {
	t.Helper()
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, each := range v.Value {
			list[i] = streamValue(t, each)
		}
		return map[string]any{"L": list}
	}
	t.Fatalf("unknown type %T", value)
	return nil
}
