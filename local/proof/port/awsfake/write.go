package awsfake

import (
	"context"
	"maps"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// action is a write of one item, alone or in a transaction.
type action struct {
	TableName                           string
	Item                                item
	Key                                 item
	UpdateExpression                    *string
	ConditionExpression                 *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           item
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
	ReturnConsumedCapacity              string
}

func (a *action) call() (string, bool) {
	key := a.Key
	if key == nil {
		key = a.Item
	}
	return subject(item{
		schema.Partition.Name: key[schema.Partition.Name], schema.Sort.Name: key[schema.Sort.Name],
	}), true
}

// planned is an evaluated action that is not applied yet.
type planned struct {
	table         *table
	key           [2]string
	before, after item
	// refused is true if the condition does not hold.
	refused bool
	// shows is true if the error for a failed condition includes the item.
	shows bool
}

// plan evaluates an action. operation is the operation of the request, or of the action in a
// transaction.
func (d *DynamoDB) plan(operation string, a *action) (*planned, error) {
	t, err := d.table(a.TableName)
	if err != nil {
		return nil, err
	}
	p := &planned{table: t, shows: a.ReturnValuesOnConditionCheckFailure == "ALL_OLD"}
	e := newExpressions(a.ExpressionAttributeNames, a.ExpressionAttributeValues)
	met, changes := e.condition(a.ConditionExpression), e.update(a.UpdateExpression)
	if err := e.finish(); err != nil {
		return nil, err
	}
	key := a.Key
	if operation == "PutItem" {
		key = a.Item
	}
	if key, err = key.checked(); err != nil {
		return nil, err
	}
	if p.key, err = t.keyOf(key, operation != "PutItem"); err != nil {
		return nil, err
	}
	p.before = t.itemAt(p.key)
	if p.refused = !met(p.before); p.refused {
		return p, nil
	}
	switch operation {
	case "PutItem":
		p.after = key
	case "UpdateItem":
		if changes.touches(t.own.partition.Name) || changes.touches(t.own.sort.Name) {
			return nil, invalid("cannot update a key attribute")
		}
		before := p.before
		if before == nil {
			before = maps.Clone(key)
		}
		if p.after, err = changes.apply(before); err != nil {
			return nil, err
		}
	case "ConditionCheck":
		if a.ConditionExpression == nil {
			return nil, invalid("a ConditionCheck needs a ConditionExpression")
		}
		p.after = p.before
	}
	return p, t.checkItem(p.after)
}

func (u update) touches(name string) bool { return u.sets[name] != nil || u.removes[name] }

// old returns the item for the error of a failed condition, or nil if the request does not ask
// for it.
func (p *planned) old() item {
	if p.shows {
		return p.before
	}
	return nil
}

// apply writes the item and returns the used units, or 0 if units are not counted.
func (d *DynamoDB) apply(p *planned, wanted string) float64 {
	d.write(p)
	if !d.counts(wanted) {
		return 0
	}
	used := units.Written(p.before, p.after, size)
	d.throughput.use(p.table.name, p.key[0], true, used)
	return used
}

func (d *DynamoDB) write(p *planned) {
	if p.before != nil || p.after != nil {
		p.table.write(p.key, p.after, d.config.Clock.Now(), d.config.Lag, d.config.Seed)
	}
}

type written struct {
	Attributes       item      `json:",omitempty"`
	ConsumedCapacity *consumed `json:",omitempty"`
}

func (d *DynamoDB) writeItem(_ context.Context, c Call, a *action, fate Fate) (any, error) {
	p, err := d.plan(c.Operation, a)
	if err != nil {
		return nil, err
	}
	if d.throughput.refuses(p.table.name, p.key[0], true) {
		return nil, throttled(c)
	}
	if fate == Conflicted {
		return nil, refuse("TransactionConflictException", "transaction is ongoing for the item")
	}
	if p.refused {
		d.throughput.use(p.table.name, p.key[0], true, p.refusedUnits())
		r := refuse("ConditionalCheckFailedException", "the conditional request failed")
		if is := p.old(); is != nil {
			r.more = map[string]any{"Item": is}
		}
		return nil, r
	}
	output := &written{}
	switch a.ReturnValues {
	case "", "NONE":
	case "ALL_NEW":
		output.Attributes = p.after
	case "ALL_OLD":
		output.Attributes = p.before
	default:
		return nil, invalid("the fake returns ALL_NEW, ALL_OLD or NONE, got %s", a.ReturnValues)
	}
	output.ConsumedCapacity, err = report(a.ReturnConsumedCapacity, p.table.name, d.apply(p, a.ReturnConsumedCapacity))
	return output, err
}
