package dynamo

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/run"
)

// NewEvents reads the new image of a record of the table's stream, in
// DynamoDB's JSON: the run after the commit, and the events of the commit. It
// returns no events for an item that is not a run, and for a commit without
// events.
//
// Each commit is one stream record, so each event is in one record, in order
// for each run. DynamoDB may deliver a record more than once. A commit that
// moved older events to another item has only its own here.
func NewEvents(image json.RawMessage) (run.Run, []run.Event, error) {
	var values map[string]events.DynamoDBAttributeValue
	if err := json.Unmarshal(image, &values); err != nil {
		return run.Run{}, nil, fmt.Errorf("cannot read an image of the stream: %w", err)
	}
	is := item{}
	for _, name := range []string{schema.Partition.Name, attrFresh, attrDoc, attrEvents} {
		if v, ok := values[name]; ok {
			is[name] = streamed(v)
		}
	}
	if is[attrFresh] == nil {
		return run.Run{}, nil, nil
	}
	r, err := recordOf(is)
	if err != nil {
		return run.Run{}, nil, fmt.Errorf("cannot read an image of the stream: %w", err)
	}
	all, err := eventsOf(is)
	if err != nil {
		return run.Run{}, nil, fmt.Errorf("cannot read an image of the stream, of run %s: %w", r.ID, err)
	}
	fresh := int(numberOf(is[attrFresh]))
	if fresh < 0 || fresh > len(all) {
		return run.Run{}, nil, fmt.Errorf("cannot read an image of the stream, of run %s: got %d events, of which %d are new", r.ID, len(all), fresh)
	}
	return r.Run, all[len(all)-fresh:], nil
}

// streamed converts a value of an image to the SDK's type.
func streamed(v events.DynamoDBAttributeValue) types.AttributeValue {
	switch v.DataType() {
	case events.DataTypeString:
		return text(v.String())
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}
	case events.DataTypeBinary:
		return bytes(v.Binary())
	case events.DataTypeList:
		values := make([]types.AttributeValue, len(v.List()))
		for i, each := range v.List() {
			values[i] = streamed(each)
		}
		return &types.AttributeValueMemberL{Value: values}
	}
	return nil
}
