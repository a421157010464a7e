// Package usages describes the items of the usage of tenants in the table of package dynamo, and
// reads them.
//
// An item has the counts of one entry. The items of a tenant are in two partitions, those of single
// sessions and the others, sorted by day. An item takes less than one write unit, so it costs two
// in the transaction that charges a task, and two more for the session of the task.
package usages

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/usage"
)

// Entries are what a commit adds.
type Entries = []usage.Entry

// partition returns the partition key of the items of a tenant.
func partition(tenant string, sessions bool) string {
	kind := "usage"
	if sessions {
		kind = "usage-session"
	}
	return url.PathEscape(tenant) + "#" + kind + "#"
}

// Key returns the key of the item of an entry.
func Key(e usage.Entry) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		schema.Partition.Name: &types.AttributeValueMemberS{Value: partition(e.Tenant, e.Session != "")},
		schema.Sort.Name:      &types.AttributeValueMemberS{Value: e.ID()},
	}
}

// Counts returns the attributes of an entry that are not 0. Stores add them to those of the item.
func Counts(e usage.Entry) map[string]int64 {
	counts := map[string]int64{}
	for i, n := range e.Values() {
		if n != 0 {
			counts[attribute(i)] = n
		}
	}
	return counts
}

func attribute(i int) string { return "n" + strconv.Itoa(i) }

// Reader implements port.UsageStore.
type Reader struct {
	// Table is the name of the table. Query sends a query.
	Table string
	Query func(context.Context, *dynamodb.QueryInput) (*dynamodb.QueryOutput, error)
}

// Usage implements port.UsageStore.
func (r Reader) Usage(ctx context.Context, tenant, from, to string, sessions bool, after string, limit int) (found []usage.Entry, err error) {
	if limit <= 0 {
		return nil, nil
	}
	if after != "" {
		from = max(from, after+" ") // no id has a space
	}
	in := &dynamodb.QueryInput{
		TableName: &r.Table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#pk = :pk AND #sk BETWEEN :from AND :to"),
		ExpressionAttributeNames: map[string]string{"#pk": schema.Partition.Name, "#sk": schema.Sort.Name},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk":   &types.AttributeValueMemberS{Value: partition(tenant, sessions)},
			":from": &types.AttributeValueMemberS{Value: from}, ":to": &types.AttributeValueMemberS{Value: to + "$"}, // after '#', which ends the day
		},
	}
	for len(found) < limit {
		in.Limit = aws.Int32(int32(min(limit-len(found), 10_000))) //nolint:gosec // within 1 to 10,000
		out, err := r.Query(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("cannot read the usage of %s: %w", tenant, err)
		}
		for _, is := range out.Items {
			e, err := entryOf(tenant, is)
			if err != nil {
				return nil, err
			}
			found = append(found, e)
		}
		if len(out.LastEvaluatedKey) == 0 {
			break
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
	return found, nil
}

// entryOf returns the entry of an item.
func entryOf(tenant string, is map[string]types.AttributeValue) (usage.Entry, error) {
	id, _ := is[schema.Sort.Name].(*types.AttributeValueMemberS)
	if id == nil {
		return usage.Entry{}, fmt.Errorf("an item of the usage of %s has no id", tenant)
	}
	name, err := usage.ParseID(id.Value)
	if err != nil {
		return usage.Entry{}, fmt.Errorf("cannot read the usage of %s: %w", tenant, err)
	}
	v := usage.Sum{}.Values()
	for i := range v {
		if n, ok := is[attribute(i)].(*types.AttributeValueMemberN); ok {
			if v[i], err = strconv.ParseInt(n.Value, 10, 64); err != nil {
				return usage.Entry{}, fmt.Errorf("cannot read the usage of %s: %w", tenant, err)
			}
		}
	}
	return usage.Entry{Tenant: tenant, Name: name, Sum: usage.SumOf(v)}, nil
}
