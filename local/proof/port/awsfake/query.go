package awsfake

import (
	"context"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// maxPage is the number of bytes after which a page of a query ends.
const maxPage = 1 << 20

type query struct {
	TableName                 string
	IndexName                 string
	ConsistentRead            bool
	KeyConditionExpression    *string
	FilterExpression          *string
	ProjectionExpression      *string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues item
	ExclusiveStartKey         item
	ScanIndexForward          *bool
	Limit                     *int
	Select                    string
	ReturnConsumedCapacity    string
}

func (r *query) call() (string, bool) {
	return strings.TrimSpace(r.IndexName + " " + subject(r.ExpressionAttributeValues) + " " + subject(r.ExclusiveStartKey)), false
}

type page struct {
	Items            []item `json:",omitempty"`
	Count            int
	ScannedCount     int
	LastEvaluatedKey item      `json:",omitempty"`
	ConsumedCapacity *consumed `json:",omitempty"`
}

func (d *DynamoDB) query(_ context.Context, c Call, r *query, fate Fate) (any, error) {
	t, err := d.table(r.TableName)
	if err != nil {
		return nil, err
	}
	x, err := t.index(r.IndexName)
	if err != nil {
		return nil, err
	}
	if x != t.own && r.ConsistentRead {
		return nil, invalid("consistent reads are not supported on global secondary indexes")
	}
	if r.Limit != nil && *r.Limit < 1 {
		return nil, invalid("got limit %d, want at least 1", *r.Limit)
	}
	if r.Select != "" && r.Select != "COUNT" {
		return nil, invalid("the fake supports the selection COUNT, got %s", r.Select)
	}
	e := newExpressions(r.ExpressionAttributeNames, r.ExpressionAttributeValues)
	selected := e.keyCondition(r.KeyConditionExpression, x)
	filter, shown := e.condition(r.FilterExpression), e.projection(r.ProjectionExpression)
	if err := e.finish(); err != nil {
		return nil, err
	}
	entries, err := t.after(x, selected, r)
	if err != nil {
		return nil, err
	}
	if x == t.own && d.throughput.refuses(t.name, selected.group, false) {
		return nil, throttled(c)
	}
	p, bytes := d.page(t, x, entries, pageOf{consistent: r.ConsistentRead, limit: r.Limit, fate: fate}, func(part item) (item, bool) {
		return part.only(shown), filter(part)
	})
	if x == t.own {
		d.throughput.use(t.name, selected.group, false, readUnits(bytes, r.ConsistentRead))
	}
	if r.Select == "COUNT" {
		p.Items = nil
	}
	p.ConsumedCapacity, err = report(r.ReturnConsumedCapacity, t.name, readUnits(bytes, r.ConsistentRead))
	return p, err
}

// pageOf has the parameters of a page of a query or a scan.
type pageOf struct {
	consistent bool
	// limit is the maximum number of entries to read; nil is no limit.
	limit *int
	fate  Fate
}

// page reads entries until the page is full and returns the number of bytes read. take returns
// the part of an entry for the client, or false to leave the entry out.
func (d *DynamoDB) page(t *table, x *index, entries []entry, want pageOf, take func(item) (item, bool)) (p *page, bytes int) {
	most := len(entries) + 1
	if want.limit != nil {
		most = *want.limit
	}
	if want.fate == Partial && len(entries) > 1 {
		most = min(most, (len(entries)+1)/2)
	}
	p = &page{}
	for _, e := range entries {
		is := e.item
		if x == t.own {
			if is = d.see(e.row, want.consistent); is == nil {
				continue
			}
		}
		bytes += is.bytes()
		p.ScannedCount++
		if got, ok := take(is); ok {
			p.Count++
			p.Items = append(p.Items, got)
		}
		if p.ScannedCount == most || bytes >= maxPage {
			p.LastEvaluatedKey = t.keyIn(x, is)
			break
		}
	}
	return p, bytes
}

func (t *table) index(name string) (*index, error) {
	if name == "" {
		return t.own, nil
	}
	for _, x := range t.indexes {
		if x.name == name {
			return x, nil
		}
	}
	return nil, invalid("the table does not have the specified index: %s", name)
}

// keyRange is a parsed key condition: a group of entries and a condition on their sort keys.
// from is a lower bound of the sort keys for which holds is true.
type keyRange struct {
	group, from string
	holds       func(sort string) bool
}

// keyCondition parses "#partition = :value" and an optional condition on the sort key after
// AND.
func (e *expressions) keyCondition(text *string, x *index) keyRange {
	k := keyRange{holds: func(string) bool { return true }}
	if text == nil {
		e.fail("either the KeyConditions or KeyConditionExpression parameter must be specified")
		return k
	}
	e.start(*text)
	e.key(x.partition)
	e.expect("=")
	k.group = e.keyValue(x.partition)
	if _, ok := e.accept("AND"); ok {
		k.from, k.holds = e.sortCondition(x.sort)
	}
	e.end()
	return k
}

// key parses the name of the key attribute.
func (e *expressions) key(k schema.Key) {
	if name := e.attribute(); name != k.Name {
		e.fail("query condition missed key schema element: got %s, want %s", name, k.Name)
	}
}

// keyValue parses the value of the key attribute.
func (e *expressions) keyValue(k schema.Key) string {
	v := e.constant()
	if e.err != nil {
		return ""
	}
	text, err := order(v)
	if kind(v) != k.Type || err != nil || text == "" {
		e.fail("condition parameter type does not match schema type of %s", k.Name)
	}
	return text
}

// sortCondition parses a condition on the sort key. from is a lower bound of the sort keys for
// which it holds.
func (e *expressions) sortCondition(k schema.Key) (from string, holds func(string) bool) {
	if _, ok := e.accept("BEGINS_WITH"); ok {
		e.expect("(")
		e.key(k)
		e.expect(",")
		prefix := e.keyValue(k)
		e.expect(")")
		return prefix, func(sort string) bool { return strings.HasPrefix(sort, prefix) }
	}
	e.key(k)
	if _, ok := e.accept("BETWEEN"); ok {
		from = e.keyValue(k)
		e.expect("AND")
		to := e.keyValue(k)
		if from > to {
			e.fail("the BETWEEN operator requires upper bound to be greater than or equal to lower bound")
		}
		return from, func(sort string) bool { return sort <= to }
	}
	operator := e.comparator()
	if operator == "<>" {
		e.fail("unsupported operator on KeyCondition: <>")
	}
	limit := e.keyValue(k)
	if operator == "=" || operator == ">=" || operator == ">" {
		from = limit
	}
	return from, func(sort string) bool { return ordered(operator, strings.Compare(sort, limit)) }
}

// after returns the entries of a query in its order, after its start key.
func (t *table) after(x *index, k keyRange, r *query) ([]entry, error) {
	var start *entry
	if r.ExclusiveStartKey != nil {
		e, err := t.place(x, r.ExclusiveStartKey)
		if err != nil {
			return nil, err
		}
		start = &e
	}
	var selected []entry
	backward := r.ScanIndexForward != nil && !*r.ScanIndexForward
	group := x.groups[k.group]
	first, _ := slices.BinarySearchFunc(group, k.from, func(e entry, from string) int { return strings.Compare(e.sort, from) })
	for _, e := range group[first:] {
		passed := start != nil && (backward && before(e, *start) >= 0 || !backward && before(e, *start) <= 0)
		if k.holds(e.sort) && !passed {
			selected = append(selected, e)
		}
	}
	if backward {
		slices.Reverse(selected)
	}
	return selected, nil
}

// place returns the position of a start key in an index.
func (t *table) place(x *index, start item) (entry, error) {
	start, err := start.checked()
	if err != nil || len(t.keyIn(x, start)) != len(start) {
		return entry{}, invalid("the provided starting key is invalid")
	}
	own := item{t.own.partition.Name: start[t.own.partition.Name], t.own.sort.Name: start[t.own.sort.Name]}
	key, err := t.keyOf(own, true)
	if err != nil {
		return entry{}, err
	}
	e, ok := x.entryOf(&row{key: key}, start)
	if !ok {
		return entry{}, invalid("the provided starting key is invalid")
	}
	return e, nil
}

// keyIn returns the key attributes of an item in the table and in an index.
func (t *table) keyIn(x *index, is item) item {
	key := item{}
	for _, k := range []schema.Key{t.own.partition, t.own.sort, x.partition, x.sort} {
		if v, ok := is[k.Name]; ok && kind(v) == k.Type {
			key[k.Name] = v
		}
	}
	return key
}
