package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// maxParts is the most items in one transaction: Amazon DynamoDB Developer
// Guide, "Quotas".
const maxParts = 100

// errAgain reports that the write was planned on an outdated item.
var errAgain = errors.New("the plan is outdated")

// errApplied reports that an earlier try of the refused write was applied, but its response was
// lost.
var errApplied = errors.New("already applied")

// part is one item of a write: exactly one of put, key with sets or removes,
// key with remove, or key alone, which only checks.
type part struct {
	put    item
	key    item
	remove bool

	sets, removes, conditions []string
	names                     map[string]string
	values                    item

	// refused is called with the stored item if a condition of the part failed. It returns the
	// result of the write. If refused is nil, the result is errAgain.
	refused func(ctx context.Context, is item) error
}

func (p *part) name(attribute string) string {
	if p.names == nil {
		p.names = map[string]string{}
	}
	p.names["#"+attribute] = attribute
	return "#" + attribute
}

func (p *part) value(v types.AttributeValue) string {
	if p.values == nil {
		p.values = item{}
	}
	name := ":" + strconv.Itoa(len(p.values))
	p.values[name] = v
	return name
}

func (p *part) set(attribute string, v types.AttributeValue) {
	p.sets = append(p.sets, p.name(attribute)+" = "+p.value(v))
}

// add adds n to a number. An absent attribute is 0.
func (p *part) add(attribute string, n int64) {
	p.sets = append(p.sets, p.name(attribute)+" = if_not_exists("+p.name(attribute)+", "+p.value(number(0))+") + "+p.value(number(n)))
}

func (p *part) drop(attribute string) { p.removes = append(p.removes, p.name(attribute)) }

// where adds a condition that compares an attribute with a value.
func (p *part) where(attribute, comparison string, v types.AttributeValue) {
	p.conditions = append(p.conditions, p.name(attribute)+" "+comparison+" "+p.value(v))
}

func (p *part) present(attribute string) {
	p.conditions = append(p.conditions, "attribute_exists("+p.name(attribute)+")")
}

func (p *part) absent(attribute string) {
	p.conditions = append(p.conditions, "attribute_not_exists("+p.name(attribute)+")")
}

func (p *part) condition() *string {
	if len(p.conditions) == 0 {
		return nil
	}
	return aws.String(strings.Join(p.conditions, " AND "))
}

func (p *part) update() *string {
	var clauses []string
	if len(p.sets) > 0 {
		clauses = append(clauses, "SET "+strings.Join(p.sets, ", "))
	}
	if len(p.removes) > 0 {
		clauses = append(clauses, "REMOVE "+strings.Join(p.removes, ", "))
	}
	return aws.String(strings.Join(clauses, " "))
}

const oldItem = types.ReturnValuesOnConditionCheckFailureAllOld

// send writes the parts: one part with its own request, which costs half, more in a
// transaction. A retry of the transaction has the same token.
func (s *Store) send(ctx context.Context, parts []*part) error {
	if len(parts) > maxParts {
		return fault.New(fault.Internal, "a commit of %d items is too large, want at most %d", len(parts), maxParts)
	}
	if len(parts) > 1 {
		in := &dynamodb.TransactWriteItemsInput{
			TransactItems: make([]types.TransactWriteItem, len(parts)), ClientRequestToken: aws.String(fmt.Sprintf("%016x%016x", s.config.Random(), s.config.Random())),
			ReturnConsumedCapacity: s.returnConsumed(),
		}
		for i, p := range parts {
			in.TransactItems[i] = p.transact(&s.config.Table)
		}
		_, err := call(ctx, s, s.api.TransactWriteItems, in)
		return err
	}
	p, table, wanted := parts[0], &s.config.Table, s.returnConsumed()
	var err error
	switch {
	case p.put != nil:
		_, err = call(ctx, s, s.api.PutItem, &dynamodb.PutItemInput{
			TableName: table, Item: p.put, ConditionExpression: p.condition(), ReturnConsumedCapacity: wanted,
			ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values, ReturnValuesOnConditionCheckFailure: oldItem,
		})
	case p.remove:
		_, err = call(ctx, s, s.api.DeleteItem, &dynamodb.DeleteItemInput{
			TableName: table, Key: p.key, ConditionExpression: p.condition(), ReturnConsumedCapacity: wanted,
			ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values, ReturnValuesOnConditionCheckFailure: oldItem,
		})
	default:
		_, err = call(ctx, s, s.api.UpdateItem, &dynamodb.UpdateItemInput{
			TableName: table, Key: p.key, UpdateExpression: p.update(), ConditionExpression: p.condition(), ReturnConsumedCapacity: wanted,
			ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values, ReturnValuesOnConditionCheckFailure: oldItem,
		})
	}
	return err
}

func (p *part) transact(table *string) types.TransactWriteItem {
	switch {
	case p.put != nil:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: table, Item: p.put, ConditionExpression: p.condition(), ExpressionAttributeNames: p.names,
			ExpressionAttributeValues: p.values, ReturnValuesOnConditionCheckFailure: oldItem,
		}}
	case p.remove:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: table, Key: p.key, ConditionExpression: p.condition(), ExpressionAttributeNames: p.names,
			ExpressionAttributeValues: p.values, ReturnValuesOnConditionCheckFailure: oldItem,
		}}
	case len(p.sets)+len(p.removes) == 0:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: table, Key: p.key, ConditionExpression: p.condition(), ExpressionAttributeNames: p.names,
			ExpressionAttributeValues: p.values, ReturnValuesOnConditionCheckFailure: oldItem,
		}}
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: table, Key: p.key, UpdateExpression: p.update(), ConditionExpression: p.condition(), ExpressionAttributeNames: p.names,
		ExpressionAttributeValues: p.values, ReturnValuesOnConditionCheckFailure: oldItem,
	}}
}

// write sends the parts. If conditions failed, it returns the result of the first part whose
// refused does not return errAgain, otherwise errAgain.
func (s *Store) write(ctx context.Context, parts []*part) error {
	err := s.send(ctx, parts)
	reasons := refused(err)
	if reasons == nil {
		return err
	}
	for i, p := range parts[:min(len(parts), len(reasons))] {
		if !failed(reasons[i]) || p.refused == nil {
			continue
		}
		if err := p.refused(ctx, reasons[i].Item); !errors.Is(err, errAgain) {
			return err
		}
	}
	return errAgain
}
