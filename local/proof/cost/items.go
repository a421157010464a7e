package cost

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// key identifies an item.
type key struct {
	Table string
	Key   item
}

// keysOf returns the keys of the items in a TransactWriteItems.
func keysOf(in map[string]any) []key {
	text, err := json.Marshal(in["TransactItems"])
	if err != nil {
		return nil
	}
	var actions []map[string]struct {
		TableName string
		Key, Item item
	}
	if err := json.Unmarshal(text, &actions); err != nil {
		return nil
	}
	var keys []key
	for _, action := range actions {
		for _, each := range action { // exactly one of Put, Update, Delete, ConditionCheck
			if each.Key == nil {
				each.Key = item{}
				for _, name := range []string{schema.Partition.Name, schema.Sort.Name} {
					each.Key[name] = each.Item[name]
				}
			}
			keys = append(keys, key{each.TableName, each.Key})
		}
	}
	return keys
}

// items reads items. The result has nil for a missing item.
func (p *Proxy) items(ctx context.Context, header http.Header, keys []key) []item {
	found := make([]item, len(keys))
	header = header.Clone()
	header.Set("X-Amz-Target", "DynamoDB_20120810.GetItem")
	for i, k := range keys {
		answer, err := p.send(ctx, header, map[string]any{"TableName": k.Table, "Key": k.Key, "ConsistentRead": true})
		if err != nil {
			continue
		}
		var out struct{ Item item }
		if json.Unmarshal(answer.body, &out) == nil {
			found[i] = out.Item
		}
	}
	return found
}

// consumed returns the units in an answer, summed over all tables.
func consumed(answer []byte) float64 {
	type capacity struct{ CapacityUnits float64 }
	var one struct{ ConsumedCapacity capacity }
	if json.Unmarshal(answer, &one) == nil {
		return one.ConsumedCapacity.CapacityUnits
	}
	var many struct{ ConsumedCapacity []capacity }
	total := 0.0
	if json.Unmarshal(answer, &many) == nil {
		for _, c := range many.ConsumedCapacity {
			total += c.CapacityUnits
		}
	}
	return total
}
