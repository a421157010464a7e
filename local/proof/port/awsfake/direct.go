package awsfake

import (
	"context"
	"maps"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Direct is a DynamoDB client that calls the fake without encoding requests and responses,
// because the SDK needs more time to encode a call than the fake to make it. Results and errors
// are the same as with the SDK's client without retries. A failed call, or one with a field
// that the fake does not support, goes through the SDK. It is safe for concurrent use.
//
// It has the operations on items.
type Direct struct {
	db  *DynamoDB
	sdk *dynamodb.Client
}

// Direct returns a Direct client of the service.
func (d *DynamoDB) Direct() *Direct {
	return &Direct{d, dynamodb.NewFromConfig(d.AWS(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })}
}

// failed is an HTTP client that returns the error of a failed call as a response.
type failed struct {
	service *service
	err     error
}

// Do implements aws.HTTPClient.
func (f failed) Do(r *http.Request) (*http.Response, error) { return f.service.respond(r, nil, f.err) }

// failing makes the SDK return the error of a call, in the form in which it returns errors of
// the service.
func (c *Direct) failing(err error) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.HTTPClient = failed{&c.db.service, err} }
}

// ask makes a call without the SDK.
func ask[T any, R request[T], Out any](
	ctx context.Context, c *Direct, operation string, r R, do func(context.Context, Call, R, Fate) (any, error),
) (out Out, err error) {
	if err := ctx.Err(); err != nil {
		return out, err
	}
	answered, err := c.db.answer(ctx, callOf(operation, r), c.db.locked(func(ctx context.Context, call Call, fate Fate) (any, error) {
		return do(ctx, call, r, fate)
	}))
	if err != nil {
		return out, err
	}
	return answered.(Out), nil //nolint:forcetypeassert // the caller names the answer of its operation
}

// GetItem returns an item.
func (c *Direct) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if in.TableName == nil || in.Key == nil || in.AttributesToGet != nil {
		return c.sdk.GetItem(ctx, in)
	}
	out, err := ask[getItem, *getItem, *gotItem](ctx, c, "GetItem", &getItem{
		TableName: *in.TableName, Key: in.Key, ConsistentRead: aws.ToBool(in.ConsistentRead), ProjectionExpression: in.ProjectionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ReturnConsumedCapacity: string(in.ReturnConsumedCapacity),
	}, c.db.getItem)
	if err != nil {
		return c.sdk.GetItem(ctx, in, c.failing(err))
	}
	return &dynamodb.GetItemOutput{Item: copied(out.Item), ConsumedCapacity: out.ConsumedCapacity.sdk()}, nil
}

// BatchGetItem returns several items.
func (c *Direct) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	r := &batchGetItem{RequestItems: map[string]keysAndAttributes{}, ReturnConsumedCapacity: string(in.ReturnConsumedCapacity)}
	known := in.RequestItems != nil
	for name, part := range in.RequestItems {
		known = known && part.Keys != nil && part.AttributesToGet == nil
		r.RequestItems[name] = keysAndAttributes{
			Keys: itemsOf(part.Keys), ConsistentRead: aws.ToBool(part.ConsistentRead), ProjectionExpression: part.ProjectionExpression,
			ExpressionAttributeNames: part.ExpressionAttributeNames,
		}
	}
	if !known {
		return c.sdk.BatchGetItem(ctx, in)
	}
	out, err := ask[batchGetItem, *batchGetItem, *gotItems](ctx, c, "BatchGetItem", r, c.db.batchGetItem)
	if err != nil {
		return c.sdk.BatchGetItem(ctx, in, c.failing(err))
	}
	answer := &dynamodb.BatchGetItemOutput{
		Responses: map[string][]map[string]types.AttributeValue{}, UnprocessedKeys: map[string]types.KeysAndAttributes{}, ConsumedCapacity: allCapacity(out.ConsumedCapacity),
	}
	for name, items := range out.Responses {
		answer.Responses[name] = allCopied(items)
	}
	for name, left := range out.UnprocessedKeys {
		answer.UnprocessedKeys[name] = types.KeysAndAttributes{
			Keys: allCopied(left.Keys), ConsistentRead: &left.ConsistentRead, ProjectionExpression: left.ProjectionExpression,
			ExpressionAttributeNames: left.ExpressionAttributeNames,
		}
	}
	return answer, nil
}

// Query returns a page of the items of a partition key.
func (c *Direct) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if in.TableName == nil || in.AttributesToGet != nil || in.ConditionalOperator != "" || in.KeyConditions != nil || in.QueryFilter != nil {
		return c.sdk.Query(ctx, in)
	}
	out, err := ask[query, *query, *page](ctx, c, "Query", &query{
		TableName: *in.TableName, IndexName: aws.ToString(in.IndexName), ConsistentRead: aws.ToBool(in.ConsistentRead),
		KeyConditionExpression: in.KeyConditionExpression, FilterExpression: in.FilterExpression, ProjectionExpression: in.ProjectionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues, ExclusiveStartKey: in.ExclusiveStartKey,
		ScanIndexForward: in.ScanIndexForward, Limit: limitOf(in.Limit), Select: string(in.Select), ReturnConsumedCapacity: string(in.ReturnConsumedCapacity),
	}, c.db.query)
	if err != nil {
		return c.sdk.Query(ctx, in, c.failing(err))
	}
	return &dynamodb.QueryOutput{
		Items: allCopied(out.Items), Count: int32(out.Count), ScannedCount: int32(out.ScannedCount), //nolint:gosec // a page is small
		LastEvaluatedKey: out.LastEvaluatedKey, ConsumedCapacity: out.ConsumedCapacity.sdk(),
	}, nil
}

// Scan returns a page of all items.
func (c *Direct) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if in.TableName == nil || in.AttributesToGet != nil || in.ConditionalOperator != "" || in.ExpressionAttributeNames != nil ||
		in.ExpressionAttributeValues != nil || in.FilterExpression != nil || in.ProjectionExpression != nil || in.ScanFilter != nil ||
		in.Segment != nil || in.Select != "" || in.TotalSegments != nil {
		return c.sdk.Scan(ctx, in)
	}
	out, err := ask[scan, *scan, *page](ctx, c, "Scan", &scan{
		TableName: *in.TableName, IndexName: aws.ToString(in.IndexName), ConsistentRead: aws.ToBool(in.ConsistentRead),
		ExclusiveStartKey: in.ExclusiveStartKey, Limit: limitOf(in.Limit), ReturnConsumedCapacity: string(in.ReturnConsumedCapacity),
	}, c.db.scan)
	if err != nil {
		return c.sdk.Scan(ctx, in, c.failing(err))
	}
	return &dynamodb.ScanOutput{
		Items: allCopied(out.Items), Count: int32(out.Count), ScannedCount: int32(out.ScannedCount), //nolint:gosec // a page is small
		LastEvaluatedKey: out.LastEvaluatedKey, ConsumedCapacity: out.ConsumedCapacity.sdk(),
	}, nil
}

// copied returns a copy of the item, which the client may change.
func copied(is item) map[string]types.AttributeValue {
	if len(is) == 0 {
		return nil
	}
	return maps.Clone(is)
}

func allCopied(items []item) []map[string]types.AttributeValue {
	all := make([]map[string]types.AttributeValue, len(items))
	for i, is := range items {
		all[i] = copied(is)
	}
	return all
}

func itemsOf(all []map[string]types.AttributeValue) []item {
	items := make([]item, len(all))
	for i, is := range all {
		items[i] = is
	}
	return items
}

func limitOf(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

// sdk converts the consumed capacity to the type of the SDK.
func (c *consumed) sdk() *types.ConsumedCapacity {
	if c == nil {
		return nil
	}
	return &types.ConsumedCapacity{TableName: &c.TableName, CapacityUnits: &c.CapacityUnits}
}

func allCapacity(all []consumed) (of []types.ConsumedCapacity) {
	for _, c := range all {
		of = append(of, *c.sdk())
	}
	return of
}
