package awsfake

import (
	"context"
	"math"
	"slices"
	"strings"
)

// consumed is the consumed capacity in a response.
type consumed struct {
	TableName     string
	CapacityUnits float64
}

// report returns the consumed capacity if the request asks for it.
func report(wanted, table string, units float64) (*consumed, error) {
	switch wanted {
	case "", "NONE":
		return nil, nil //nolint:nilnil // no report
	case "TOTAL":
		return &consumed{table, units}, nil
	}
	return nil, invalid("the fake reports capacity as TOTAL, got %s", wanted)
}

// readUnits returns the read units for a number of bytes, at least one block. DynamoDB Local
// reports 0 for an empty page.
func readUnits(bytes int, consistent bool) float64 {
	units := max(math.Ceil(float64(bytes)/4096), 1)
	if consistent {
		return units
	}
	return units / 2
}

// read returns the item with the key as a read sees it.
func (d *DynamoDB) read(t *table, key [2]string, consistent bool) item {
	return d.see(t.rows[key], consistent)
}

// see returns the item of a row as a read sees it. An eventually consistent read may see an
// earlier version.
func (d *DynamoDB) see(r *row, consistent bool) item {
	if r == nil || consistent || d.config.Stale <= 0 {
		return r.seen(d.config.Clock.Now(), false)
	}
	if r.reads++; len(r.earlier) == 0 {
		return r.item
	}
	stale := draw(d.config.Seed, r.reads, "read", r.key[0], r.key[1]).Float64() < d.config.Stale
	return r.seen(d.config.Clock.Now(), stale)
}

type getItem struct {
	TableName                string
	Key                      item
	ConsistentRead           bool
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
	ReturnConsumedCapacity   string
}

func (r *getItem) call() (string, bool) { return subject(r.Key), false }

// subject returns the values of a key as text, sorted by attribute.
func subject(key item) string {
	var values []string
	for name, v := range key {
		text := ""
		if k := kind(v); k == "S" || k == "N" || k == "B" {
			text, _ = order(v)
		}
		values = append(values, name+"="+text)
	}
	slices.Sort(values)
	return strings.Join(values, " ")
}

func (d *DynamoDB) getItem(_ context.Context, c Call, r *getItem, _ Fate) (any, error) {
	t, err := d.table(r.TableName)
	if err != nil {
		return nil, err
	}
	key, err := t.keyOf(r.Key, true)
	if err != nil {
		return nil, err
	}
	e := newExpressions(r.ExpressionAttributeNames, nil)
	shown := e.projection(r.ProjectionExpression)
	if err := e.finish(); err != nil {
		return nil, err
	}
	if d.throughput.refuses(t.name, key[0], false) {
		return nil, throttled(c)
	}
	is := d.read(t, key, r.ConsistentRead)
	d.throughput.use(t.name, key[0], false, readUnits(is.bytes(), r.ConsistentRead))
	used, err := report(r.ReturnConsumedCapacity, t.name, readUnits(is.bytes(), r.ConsistentRead))
	return &gotItem{is.only(shown), used}, err
}

type gotItem struct {
	Item             item      `json:",omitempty"`
	ConsumedCapacity *consumed `json:",omitempty"`
}

// Limits of BatchGetItem.
const (
	maxBatch      = 100
	maxBatchBytes = 16 << 20
)

type keysAndAttributes struct {
	Keys                     []item
	ConsistentRead           bool
	ProjectionExpression     *string           `json:",omitempty"`
	ExpressionAttributeNames map[string]string `json:",omitempty"`
}

type batchGetItem struct {
	RequestItems           map[string]keysAndAttributes
	ReturnConsumedCapacity string
}

func (r *batchGetItem) call() (string, bool) {
	for _, part := range r.RequestItems {
		if len(part.Keys) > 0 {
			return subject(part.Keys[0]), false
		}
	}
	return "", false
}

type gotItems struct {
	Responses        map[string][]item
	UnprocessedKeys  map[string]keysAndAttributes
	ConsumedCapacity []consumed `json:",omitempty"`
}

func (d *DynamoDB) batchGetItem(_ context.Context, _ Call, r *batchGetItem, fate Fate) (any, error) {
	output := &gotItems{Responses: map[string][]item{}, UnprocessedKeys: map[string]keysAndAttributes{}}
	count, bytes := 0, 0
	for name, part := range r.RequestItems {
		count += len(part.Keys)
		t, err := d.table(name)
		if err != nil {
			return nil, err
		}
		keys, err := t.distinct(part.Keys)
		if err != nil {
			return nil, err
		}
		e := newExpressions(part.ExpressionAttributeNames, nil)
		shown := e.projection(part.ProjectionExpression)
		if err := e.finish(); err != nil {
			return nil, err
		}
		whole := len(keys)
		if fate == Partial {
			whole = (len(keys) + 1) / 2
		}
		units := 0.0
		output.Responses[name] = []item{}
		for i, key := range keys {
			is := d.read(t, key, part.ConsistentRead)
			if bytes += is.bytes(); i >= whole || bytes > maxBatchBytes || d.throughput.refuses(t.name, key[0], false) {
				left := part
				left.Keys = part.Keys[i:]
				output.UnprocessedKeys[name] = left
				break
			}
			units += readUnits(is.bytes(), part.ConsistentRead)
			d.throughput.use(t.name, key[0], false, readUnits(is.bytes(), part.ConsistentRead))
			if is != nil {
				output.Responses[name] = append(output.Responses[name], is.only(shown))
			}
		}
		used, err := report(r.ReturnConsumedCapacity, t.name, units)
		if err != nil {
			return nil, err
		}
		if used != nil {
			output.ConsumedCapacity = append(output.ConsumedCapacity, *used)
		}
	}
	if count == 0 || count > maxBatch {
		return nil, invalid("got %d keys in a batch, want 1 to %d", count, maxBatch)
	}
	return output, nil
}

// distinct returns the keys of a batch. It is an error if a key occurs twice.
func (t *table) distinct(keys []item) ([][2]string, error) {
	all := make([][2]string, len(keys))
	seen := make(map[[2]string]bool, len(keys))
	for i, key := range keys {
		var err error
		if all[i], err = t.keyOf(key, true); err != nil {
			return nil, err
		}
		if seen[all[i]] {
			return nil, invalid("provided list of item keys contains duplicates")
		}
		seen[all[i]] = true
	}
	return all, nil
}
