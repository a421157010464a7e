package counts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
)

// item is an item of the table.
type item = map[string]types.AttributeValue

// meter is a DynamoDB client that counts the requests of a store.
type meter struct {
	*dynamodb.Client
	mu                    sync.Mutex
	writes, reads, items  int
	encoded, decoded      int // items with the document of a run
	writeUnits, readUnits float64
}

func (m *meter) consumed(_ string, wru, rru float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writeUnits, m.readUnits = m.writeUnits+wru, m.readUnits+rru
}

// document is the attribute with the document of an item.
const document = "doc"

func ofRun(is item) bool {
	key, ok := is[schema.Partition.Name].(*types.AttributeValueMemberS)
	return ok && strings.Contains(key.Value, "#run#")
}

func (m *meter) read(found ...item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	for _, is := range found {
		if is[document] != nil && ofRun(is) {
			m.decoded++
		}
	}
}

// write counts a request that writes items. documents is the number of items with a run's
// document.
func (m *meter) write(items, documents int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	m.items += items
	m.encoded += documents
}

// updates reports whether an update writes the document of a run.
func updates(key item, expression *string, names map[string]string) bool {
	return ofRun(key) && expression != nil && (strings.Contains(*expression, document) || slices.Contains(mapValues(names), document))
}

func mapValues(of map[string]string) (all []string) {
	for _, v := range of {
		all = append(all, v)
	}
	return all
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// GetItem implements dynamo.API.
func (m *meter) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := m.Client.GetItem(ctx, in, o...)
	if err == nil {
		m.read(out.Item)
	}
	return out, err
}

// BatchGetItem implements dynamo.API.
func (m *meter) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	out, err := m.Client.BatchGetItem(ctx, in, o...)
	if err == nil {
		m.read(out.Responses[tableName]...)
	}
	return out, err
}

// Query implements dynamo.API.
func (m *meter) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := m.Client.Query(ctx, in, o...)
	if err == nil {
		m.read(out.Items...)
	}
	return out, err
}

// Scan implements dynamo.API.
func (m *meter) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	out, err := m.Client.Scan(ctx, in, o...)
	if err == nil {
		m.read(out.Items...)
	}
	return out, err
}

// PutItem implements dynamo.API.
func (m *meter) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	m.write(1, one(in.Item[document] != nil && ofRun(in.Item)))
	return m.Client.PutItem(ctx, in, o...)
}

// UpdateItem implements dynamo.API.
func (m *meter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	m.write(1, one(updates(in.Key, in.UpdateExpression, in.ExpressionAttributeNames)))
	return m.Client.UpdateItem(ctx, in, o...)
}

// DeleteItem implements dynamo.API.
func (m *meter) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	m.write(1, 0)
	return m.Client.DeleteItem(ctx, in, o...)
}

// TransactWriteItems implements dynamo.API.
func (m *meter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	items, documents := 0, 0
	for _, each := range in.TransactItems {
		switch {
		case each.Put != nil:
			items++
			documents += one(each.Put.Item[document] != nil && ofRun(each.Put.Item))
		case each.Update != nil:
			items++
			documents += one(updates(each.Update.Key, each.Update.UpdateExpression, each.Update.ExpressionAttributeNames))
		case each.Delete != nil:
			items++
		}
	}
	m.write(items, documents)
	return m.Client.TransactWriteItems(ctx, in, o...)
}

// sizeOf returns the size of an item in bytes.
func sizeOf(is item) int {
	size := 0
	for name, v := range is {
		size += len(name) + sizeOfValue(v)
	}
	return size
}

func sizeOfValue(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return units.Number(v.Value)
	case *types.AttributeValueMemberL:
		size := 3
		for _, each := range v.Value {
			size += 1 + sizeOfValue(each)
		}
		return size
	}
	return 1
}

// signedFeed counts the signatures of appended events and checkpoints.
type signedFeed struct {
	port.Feed
	mu         sync.Mutex
	signatures int
}

// Append implements port.Feed.
func (f *signedFeed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	different := map[string]bool{}
	for _, r := range b.Records {
		var envelope struct {
			Signatures []struct{ Sig string }
		}
		if err := json.Unmarshal(r.Data, &envelope); err != nil {
			return port.Head{}, err
		}
		for _, s := range envelope.Signatures {
			different[s.Sig] = true
		}
	}
	f.mu.Lock()
	f.signatures += len(different) + one(!bytes.Equal(b.Mark, nil))
	f.mu.Unlock()
	return f.Feed.Append(ctx, stream, b)
}
