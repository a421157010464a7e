package dynamo

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// NewEvents reads the new image of a record of the table's stream, in
// DynamoDB's JSON: the run after the commit, and the events of the commit. It
// returns no events for an item that is not a run, and for a commit without events.
//
// Each commit is one stream record, so each event is in one record, in order
// for each run. DynamoDB may deliver a record more than once. A commit that
// moved older events to another item has only its own here.
func NewEvents(image json.RawMessage) (run.Run, []run.Event, error) {
	c, err := ChangeOf(image)
	return c.Run, c.Events, err
}

// ChangeOf is like NewEvents, and also reads the image of a note, which has no run.
func ChangeOf(image json.RawMessage) (port.Change, error) {
	c, err := changeIn(image)
	if err != nil {
		return port.Change{}, fmt.Errorf("cannot read an image of the stream: %w", err)
	}
	return c, nil
}

func changeIn(image json.RawMessage) (c port.Change, err error) {
	var values map[string]events.DynamoDBAttributeValue
	if err := json.Unmarshal(image, &values); err != nil {
		return c, err
	}
	is := item{}
	for _, name := range []string{schema.Partition.Name, attrFresh, attrDoc, attrEvents} {
		if v, ok := values[name]; ok {
			is[name] = streamed(v)
		}
	}
	if is[attrFresh] == nil {
		return c, nil
	}
	if pk := textOf(is[schema.Partition.Name]); strings.HasPrefix(pk, notePrefix) {
		c.Notes = make([]port.Note, 1)
		if err := format.Unpack(documentOf(is[attrDoc]), &c.Notes[0]); err != nil {
			return c, fmt.Errorf("note %s: %w", pk, err)
		}
		return c, nil
	}
	r, err := recordOf(is)
	if err != nil {
		return c, err
	}
	all, err := eventsOf(is)
	if err != nil {
		return c, fmt.Errorf("run %s: %w", r.ID, err)
	}
	fresh := int(numberOf(is[attrFresh]))
	if fresh < 0 || fresh > len(all) {
		return c, fmt.Errorf("run %s: got %d events, of which %d are new", r.ID, len(all), fresh)
	}
	return port.Change{Run: r.Run, Events: all[len(all)-fresh:]}, nil
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
