package awsfake

import (
	"context"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// PutItem replaces an item.
func (c *Direct) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if in.TableName == nil || in.Item == nil || in.ConditionalOperator != "" || in.Expected != nil || in.ReturnItemCollectionMetrics != "" {
		return c.sdk.PutItem(ctx, in)
	}
	out, err := ask[action, *action, *written](ctx, c, "PutItem", &action{
		TableName: *in.TableName, Item: maps.Clone(in.Item), ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
		ExpressionAttributeValues: in.ExpressionAttributeValues, ReturnValues: string(in.ReturnValues),
		ReturnValuesOnConditionCheckFailure: string(in.ReturnValuesOnConditionCheckFailure), ReturnConsumedCapacity: string(in.ReturnConsumedCapacity),
	}, c.db.writeItem)
	if err != nil {
		return c.sdk.PutItem(ctx, in, c.failing(err))
	}
	return &dynamodb.PutItemOutput{Attributes: copied(out.Attributes), ConsumedCapacity: out.ConsumedCapacity.sdk()}, nil
}

// UpdateItem changes an item.
func (c *Direct) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if in.TableName == nil || in.Key == nil || in.AttributeUpdates != nil || in.ConditionalOperator != "" || in.Expected != nil || in.ReturnItemCollectionMetrics != "" {
		return c.sdk.UpdateItem(ctx, in)
	}
	out, err := ask[action, *action, *written](ctx, c, "UpdateItem", &action{
		TableName: *in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression, ConditionExpression: in.ConditionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues, ReturnValues: string(in.ReturnValues),
		ReturnValuesOnConditionCheckFailure: string(in.ReturnValuesOnConditionCheckFailure), ReturnConsumedCapacity: string(in.ReturnConsumedCapacity),
	}, c.db.writeItem)
	if err != nil {
		return c.sdk.UpdateItem(ctx, in, c.failing(err))
	}
	return &dynamodb.UpdateItemOutput{Attributes: copied(out.Attributes), ConsumedCapacity: out.ConsumedCapacity.sdk()}, nil
}

// DeleteItem deletes an item.
func (c *Direct) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if in.TableName == nil || in.Key == nil || in.ConditionalOperator != "" || in.Expected != nil || in.ReturnItemCollectionMetrics != "" {
		return c.sdk.DeleteItem(ctx, in)
	}
	out, err := ask[action, *action, *written](ctx, c, "DeleteItem", &action{
		TableName: *in.TableName, Key: in.Key, ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
		ExpressionAttributeValues: in.ExpressionAttributeValues, ReturnValues: string(in.ReturnValues),
		ReturnValuesOnConditionCheckFailure: string(in.ReturnValuesOnConditionCheckFailure), ReturnConsumedCapacity: string(in.ReturnConsumedCapacity),
	}, c.db.writeItem)
	if err != nil {
		return c.sdk.DeleteItem(ctx, in, c.failing(err))
	}
	return &dynamodb.DeleteItemOutput{Attributes: copied(out.Attributes), ConsumedCapacity: out.ConsumedCapacity.sdk()}, nil
}

// TransactWriteItems applies either all of the writes or none.
func (c *Direct) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	r := &transactWriteItems{
		TransactItems: make([]transactItem, len(in.TransactItems)), ClientRequestToken: aws.ToString(in.ClientRequestToken),
		ReturnConsumedCapacity: string(in.ReturnConsumedCapacity),
	}
	// The SDK generates a missing token.
	known := in.TransactItems != nil && in.ClientRequestToken != nil && in.ReturnItemCollectionMetrics == ""
	for i, each := range in.TransactItems {
		one, ok := transactItemOf(each)
		r.TransactItems[i], known = one, known && ok
	}
	if !known {
		return c.sdk.TransactWriteItems(ctx, in)
	}
	out, err := ask[transactWriteItems, *transactWriteItems, *committed](ctx, c, "TransactWriteItems", r, c.db.transactWriteItems)
	if err != nil {
		return c.sdk.TransactWriteItems(ctx, in, c.failing(err))
	}
	return &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: allCapacity(out.ConsumedCapacity)}, nil
}

// transactItemOf converts an action. It returns false if the SDK would reject the action.
func transactItemOf(each types.TransactWriteItem) (i transactItem, ok bool) {
	ok = true
	if a := each.Put; a != nil {
		ok = ok && a.TableName != nil && a.Item != nil
		i.Put = &action{
			TableName: aws.ToString(a.TableName), Item: maps.Clone(a.Item), ConditionExpression: a.ConditionExpression, ExpressionAttributeNames: a.ExpressionAttributeNames,
			ExpressionAttributeValues: maps.Clone(a.ExpressionAttributeValues), ReturnValuesOnConditionCheckFailure: string(a.ReturnValuesOnConditionCheckFailure),
		}
	}
	if a := each.Update; a != nil {
		ok = ok && a.TableName != nil && a.Key != nil && a.UpdateExpression != nil
		i.Update = &action{
			TableName: aws.ToString(a.TableName), Key: maps.Clone(a.Key), UpdateExpression: a.UpdateExpression, ConditionExpression: a.ConditionExpression,
			ExpressionAttributeNames: a.ExpressionAttributeNames, ExpressionAttributeValues: maps.Clone(a.ExpressionAttributeValues),
			ReturnValuesOnConditionCheckFailure: string(a.ReturnValuesOnConditionCheckFailure),
		}
	}
	if a := each.Delete; a != nil {
		ok = ok && a.TableName != nil && a.Key != nil
		i.Delete = &action{
			TableName: aws.ToString(a.TableName), Key: maps.Clone(a.Key), ConditionExpression: a.ConditionExpression, ExpressionAttributeNames: a.ExpressionAttributeNames,
			ExpressionAttributeValues: maps.Clone(a.ExpressionAttributeValues), ReturnValuesOnConditionCheckFailure: string(a.ReturnValuesOnConditionCheckFailure),
		}
	}
	if a := each.ConditionCheck; a != nil {
		ok = ok && a.TableName != nil && a.Key != nil && a.ConditionExpression != nil
		i.ConditionCheck = &action{
			TableName: aws.ToString(a.TableName), Key: maps.Clone(a.Key), ConditionExpression: a.ConditionExpression, ExpressionAttributeNames: a.ExpressionAttributeNames,
			ExpressionAttributeValues: maps.Clone(a.ExpressionAttributeValues), ReturnValuesOnConditionCheckFailure: string(a.ReturnValuesOnConditionCheckFailure),
		}
	}
	return i, ok
}
