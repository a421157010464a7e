package awsfake

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// scan is a Scan request without expressions.
type scan struct {
	TableName              string
	IndexName              string
	ConsistentRead         bool
	ExclusiveStartKey      item
	Limit                  *int
	ReturnConsumedCapacity string
}

func (r *scan) call() (string, bool) {
	return strings.TrimSpace(r.IndexName + " " + subject(r.ExclusiveStartKey)), false
}

// scan returns the entries of an index or of the table, ordered by partition key.
func (d *DynamoDB) scan(_ context.Context, _ Call, r *scan, fate Fate) (any, error) {
	t, err := d.table(r.TableName)
	if err != nil {
		return nil, err
	}
	x, err := t.index(r.IndexName)
	if err != nil {
		return nil, err
	}
	switch {
	case x != t.own && r.ConsistentRead:
		return nil, invalid("consistent reads are not supported on global secondary indexes")
	case r.Limit != nil && *r.Limit < 1:
		return nil, invalid("got limit %d, want at least 1", *r.Limit)
	}
	var start *entry
	if r.ExclusiveStartKey != nil {
		e, err := t.place(x, r.ExclusiveStartKey)
		if err != nil {
			return nil, err
		}
		start = &e
	}
	var entries []entry
	for _, group := range slices.Sorted(maps.Keys(x.groups)) {
		for _, e := range x.groups[group] {
			passed := start != nil && (group < start.group || group == start.group && before(e, *start) <= 0)
			if !passed {
				entries = append(entries, e)
			}
		}
	}
	p, bytes := d.page(t, x, entries, pageOf{consistent: r.ConsistentRead, limit: r.Limit, fate: fate}, func(part item) (item, bool) { return part, true })
	p.ConsumedCapacity, err = report(r.ReturnConsumedCapacity, t.name, readUnits(bytes, r.ConsistentRead))
	return p, err
}
