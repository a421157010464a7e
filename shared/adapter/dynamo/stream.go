package dynamo

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/run"
)

// NewEvents reads the new image of a record of the table's stream, in DynamoDB's
// JSON: the run as the commit left it, and the events that came with it. An item
// that is no run, and a commit without events, have none.
//
// Each commit is one record of the stream, so each event is one record's, in
// order for each run, however often DynamoDB tells the record. A commit that
// moved older events into an item of their own tells its own alone.
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
		return run.Run{}, nil, fmt.Errorf("cannot read an image of the stream, of run %s: of its %d events %d are new", r.ID, len(all), fresh)
	}
	return r.Run, all[len(all)-fresh:], nil
}

// streamed is a value of an image as the API has it, of the types that are needed
// here.
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
