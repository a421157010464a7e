package dynamo_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// registered reports whether the pool has a registration.
func (i *interleaved) registered(pool string) bool {
	i.Helper()
	out, err := i.client.GetItem(i.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("sortie"), ConsistentRead: aws.Bool(true), Key: item{
			schema.Partition.Name: &types.AttributeValueMemberS{Value: "default#pool#" + pool},
			schema.Sort.Name:      &types.AttributeValueMemberS{Value: "pool"},
		},
	})
	i.ok(err)
	return out.Item != nil
}

// use acquires and releases a slot of the pool.
func (i *interleaved) use(id string) {
	i.Helper()
	r := i.created(id, run.Admitted{Pool: "p", Limit: 1})
	i.ok(i.Commit(i.Context(), released(r)))
}

// wantUse checks what Pools returns about the only pool.
func (i *interleaved) wantUse(held int) {
	i.Helper()
	pools, err := i.Pools(i.Context())
	i.ok(err)
	if got := len(pools); got != min(held, 1) || held > 0 && pools[0].Held != held {
		i.Errorf("got pools %+v, want one with %d held slots, or none for 0", pools, held)
	}
}

func TestUnusedPoolIsForgotten(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	i.use("a")
	i.clock.Advance(2 * time.Hour)
	if i.wantUse(0); !i.registered("p") {
		t.Error("after 2 h: got no registration, want that processes may rely on it")
	}
	i.clock.Advance(time.Hour)
	if i.wantUse(0); i.registered("p") {
		t.Error("after 3 h: got a registration of an unused pool")
	}
	// The same process registers the pool for its next use.
	holder := i.created("b", run.Admitted{Pool: "p", Limit: 1})
	i.wantUse(1)
	i.clock.Advance(10 * time.Hour)
	if i.wantUse(1); !i.registered("p") {
		t.Error("used pool: got no registration after 10 h")
	}
	i.ok(i.Commit(t.Context(), released(holder)))
	i.wantUse(0)
	i.use("c")
	if !i.registered("p") {
		t.Error("got no registration after another use")
	}
}

// TestUsedPoolIsKept: another process uses the pool between the read and the removal
// of its registration.
func TestUsedPoolIsKept(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	i.use("a")
	i.clock.Advance(3 * time.Hour)
	other, err := dynamo.Open(i.db.AWS(), dynamo.Config{Table: "sortie", Clock: i.clock})
	i.ok(err)
	first := i.Store
	i.before = func() {
		i.Store = other
		i.created("b", run.Admitted{Pool: "p", Limit: 1})
		i.Store = first
	}
	i.wantUse(0)
	if i.before != nil || !i.registered("p") {
		t.Error("got no registration of a pool that is used again")
	}
	i.wantUse(1)
}

// TestOlderRegistrationIsKept: a process of an earlier version relies on its
// registration, which has no time, for as long as it runs.
func TestOlderRegistrationIsKept(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	i.use("a")
	_, err := i.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("sortie"), UpdateExpression: aws.String("REMOVE #seen"),
		ExpressionAttributeNames: map[string]string{"#seen": "seen"}, Key: item{
			schema.Partition.Name: &types.AttributeValueMemberS{Value: "default#pool#p"},
			schema.Sort.Name:      &types.AttributeValueMemberS{Value: "pool"},
		},
	})
	i.ok(err)
	i.clock.Advance(10 * time.Hour)
	if i.wantUse(0); !i.registered("p") {
		t.Error("got no registration at first")
	}
	i.clock.Advance(3 * time.Hour)
	if i.wantUse(0); i.registered("p") {
		t.Error("got a registration of an unused pool 3 h later")
	}
}
