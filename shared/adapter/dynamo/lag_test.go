package dynamo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestReconcileKeepsRunsMissingFromTheIndex acquires a slot and enters the
// queue by commits that the index does not contain yet.
func TestReconcileKeepsRunsMissingFromTheIndex(t *testing.T) {
	t.Parallel()
	s, db := openFake(t, awsfake.DynamoDBConfig{Seed: 1, Lag: time.Hour, Stale: 1})
	ctx := t.Context()
	for _, fact := range []run.Fact{run.Admitted{Pool: "p", Limit: 1}, run.Enqueued{Pool: "p", Limit: 1}} {
		d := run.New(export(fmt.Sprintf("%T", fact)), time.Now().UTC())
		if _, err := s.Create(ctx, port.WriteOf(d), nil); err != nil {
			t.Fatal(err)
		}
		d.Run.Version = 1
		d, err := run.Decide(d.Run, fact, time.Now().UTC())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(ctx, port.WriteOf(d)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Reconcile(ctx, "default", "p"); err != nil || n != 0 {
		t.Fatalf("got %d changed, %v", n, err)
	}
	db.Settle()
	pools, err := s.Pools(ctx)
	if err != nil || len(pools) != 1 || pools[0].Held != 1 || pools[0].Queued != 1 {
		t.Fatalf("got pools %+v, %v", pools, err)
	}
}

// overtaken is a client that writes another item before the next transaction.
type overtaken struct {
	dynamo.API
	first *dynamodb.PutItemInput
}

func (o *overtaken) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if o.first != nil {
		if _, err := o.PutItem(ctx, o.first); err != nil {
			return nil, err
		}
		o.first = nil
	}
	return o.API.TransactWriteItems(ctx, in, opts...)
}

// TestReconcileKeepsAReassignedSlot grants an orphaned slot to a run between
// the read and the write of Reconcile. Rule 6 of shared/README.md.
func TestReconcileKeepsAReassignedSlot(t *testing.T) {
	t.Parallel()
	cfg, ctx := database(t), t.Context()
	db, name := &overtaken{API: dynamodb.NewFromConfig(cfg)}, table(t, cfg)
	s, err := dynamo.New(db, dynamo.Config{Table: name, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	slot := func(of string) *dynamodb.PutItemInput {
		text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
		return &dynamodb.PutItemInput{TableName: &name, Item: item{
			schema.Partition.Name: text("default#pool#p"), schema.Sort.Name: text("slot#000000"), "run": text(of),
		}}
	}
	if _, err := db.PutItem(ctx, slot("gone")); err != nil {
		t.Fatal(err)
	}
	db.first = slot("new")
	if n, err := s.Reconcile(ctx, "default", "p"); err != nil || n != 0 || db.first != nil {
		t.Fatalf("got %d changed, %v", n, err)
	}
	found, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &name, Key: item{
		schema.Partition.Name: slot("").Item[schema.Partition.Name], schema.Sort.Name: slot("").Item[schema.Sort.Name],
	}})
	if err != nil || len(found.Item) == 0 || found.Item["run"].(*types.AttributeValueMemberS).Value != "new" {
		t.Errorf("got slot %v (%v)", found.Item, err)
	}
	// The holder has no record, so the next call, without a concurrent write,
	// frees the slot.
	if n, err := s.Reconcile(ctx, "default", "p"); err != nil || n != 1 {
		t.Errorf("got %d changed, %v", n, err)
	}
}
