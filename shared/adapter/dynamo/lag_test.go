//go:build localstack

package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest"
	"github.com/sortie-dev/sortie/shared/porttest/awstest"
	"github.com/sortie-dev/sortie/shared/run"
)

// lagging is a client whose indexes lack all writes since the last settle.
// Those of DynamoDB Local never lag.
type lagging struct {
	dynamo.API
	mu      sync.Mutex
	written map[string]bool
}

func (l *lagging) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.written)
}

func (l *lagging) write(is item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[partition(is)] = true
}

func partition(is item) string {
	return is[schema.Partition.Name].(*types.AttributeValueMemberS).Value
}

func (l *lagging) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	defer l.write(in.Item)
	return l.API.PutItem(ctx, in, o...)
}

func (l *lagging) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	defer l.write(in.Key)
	return l.API.UpdateItem(ctx, in, o...)
}

func (l *lagging) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := l.API.TransactWriteItems(ctx, in, o...)
	for _, each := range in.TransactItems {
		switch {
		case each.Put != nil:
			l.write(each.Put.Item)
		case each.Update != nil:
			l.write(each.Update.Key)
		}
	}
	return out, err
}

func (l *lagging) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := l.API.Query(ctx, in, o...)
	if err != nil || in.IndexName == nil {
		return out, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out.Items = slices.DeleteFunc(out.Items, func(is item) bool { return l.written[partition(is)] })
	return out, nil
}

func openLagging(t *testing.T) (*dynamo.Store, *lagging) {
	t.Helper()
	cfg := awstest.DynamoDB(t)
	db := &lagging{API: dynamodb.NewFromConfig(cfg), written: map[string]bool{}}
	s, err := dynamo.New(db, dynamo.Config{Table: table(t, cfg), Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	return s, db
}

func TestStoreWithLaggingIndexes(t *testing.T) {
	t.Parallel()
	porttest.LaggingStore(t, func(t *testing.T) (port.Store, func()) {
		s, db := openLagging(t)
		return s, db.settle
	})
}

// TestReconcileKeepsRunsMissingFromTheIndex acquires a slot and enters the
// queue by commits that the index does not contain yet.
func TestReconcileKeepsRunsMissingFromTheIndex(t *testing.T) {
	t.Parallel()
	s, db := openLagging(t)
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
	db.settle()
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
	cfg, ctx := awstest.DynamoDB(t), t.Context()
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
