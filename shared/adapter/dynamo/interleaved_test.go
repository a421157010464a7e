package dynamo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// interleaved is a store with another process between its requests.
type interleaved struct {
	*testing.T
	*dynamo.Store
	db     *awsfake.DynamoDB
	client *dynamodb.Client
	clock  leaping
	// before is called once, before a write request. later is the number of write requests to
	// skip first.
	before func()
	later  int
	// beforeGet is called once, before an item is read.
	beforeGet func()
}

func interleave(t *testing.T) *interleaved {
	t.Helper()
	i := &interleaved{T: t, clock: leaping{clock.NewVirtual(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))}}
	i.db = awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: i.clock, Plan: func(c awsfake.Call) awsfake.Fate {
		if before := i.before; c.Write && before != nil {
			if i.later--; i.later < 0 {
				i.before = nil
				before()
			}
		}
		if before := i.beforeGet; c.Operation == "GetItem" && before != nil {
			i.beforeGet = nil
			before()
		}
		return awsfake.Applied
	}})
	i.client = dynamodb.NewFromConfig(i.db.AWS())
	if err := awsfake.CreateTable(t.Context(), i.db.AWS(), "sortie"); err != nil {
		t.Fatal(err)
	}
	var err error
	if i.Store, err = dynamo.Open(i.db.AWS(), dynamo.Config{Table: "sortie", Clock: i.clock}); err != nil {
		t.Fatal(err)
	}
	return i
}

// ok fails the test with an error.
func (i *interleaved) ok(err error) {
	i.Helper()
	if err != nil {
		i.Fatal(err)
	}
}

// created returns a new run with the facts applied.
func (i *interleaved) created(id string, facts ...run.Fact) run.Run {
	i.Helper()
	w := port.WriteOf(run.New(export(id), i.clock.Now()))
	if _, err := i.Create(i.Context(), w, nil); err != nil {
		i.Fatal(err)
	}
	w.Run.Version = 1
	for _, f := range facts {
		w = i.decided(w.Run, f)
		i.ok(i.Commit(i.Context(), w))
		w.Run.Version++
	}
	return w.Run
}

func (i *interleaved) decided(r run.Run, f run.Fact) port.Write {
	i.Helper()
	d, err := run.Decide(r, f, i.clock.Now())
	if err != nil || !d.Changed {
		i.Fatalf("%T in %s: got changed %v, %v; want a change", f, r.State, d.Changed, err)
	}
	return port.WriteOf(d)
}

// released returns the write that releases the run's slot.
func released(r run.Run) port.Write {
	r.Slot.State, r.Slot.Since = "", time.Time{}
	return port.Write{Run: r, Lease: run.LeaseRelease}
}

// held returns the holders of the slots of pool p, by sort key.
func (i *interleaved) held() map[string]string {
	i.Helper()
	out, err := i.client.Query(i.Context(), &dynamodb.QueryInput{
		TableName: aws.String("sortie"), ConsistentRead: aws.Bool(true),
		KeyConditionExpression:   aws.String("#pk = :pk AND begins_with(#sk, :sk)"),
		ExpressionAttributeNames: map[string]string{"#pk": schema.Partition.Name, "#sk": schema.Sort.Name},
		ExpressionAttributeValues: item{
			":pk": &types.AttributeValueMemberS{Value: "default#pool#p"}, ":sk": &types.AttributeValueMemberS{Value: "slot#"},
		},
	})
	i.ok(err)
	held := map[string]string{}
	for _, is := range out.Items {
		held[is[schema.Sort.Name].(*types.AttributeValueMemberS).Value] = is["run"].(*types.AttributeValueMemberS).Value
	}
	return held
}

// inPool is the key of an item of pool p.
func inPool(sk string) item {
	return item{
		schema.Partition.Name: &types.AttributeValueMemberS{Value: "default#pool#p"}, schema.Sort.Name: &types.AttributeValueMemberS{Value: sk},
	}
}

// remove deletes an item of pool p.
func (i *interleaved) remove(sk string) {
	i.Helper()
	_, err := i.client.DeleteItem(i.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("sortie"), Key: inPool(sk)})
	i.ok(err)
}

// occupy makes a run acquire a slot of pool p.
func (i *interleaved) occupy(slot, id string) {
	i.Helper()
	put := inPool(slot)
	put["run"] = &types.AttributeValueMemberS{Value: id}
	_, err := i.client.PutItem(i.Context(), &dynamodb.PutItemInput{TableName: aws.String("sortie"), Item: put})
	i.ok(err)
}

// TestSlotTakenMeanwhile: between the choice of the only free slot and the
// commit, another run takes it.
func TestSlotTakenMeanwhile(t *testing.T) {
	t.Parallel()
	const limit = 1
	for name, test := range map[string]struct{ before, fact run.Fact }{
		"admitted": {nil, run.Admitted{Pool: "p", Limit: limit}},
		"granted":  {run.Enqueued{Pool: "p", Limit: limit}, run.Granted{Limit: limit}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := interleave(t)
			var before []run.Fact
			if test.before != nil {
				before = append(before, test.before)
			}
			a, b := i.created("a", before...), i.created("b", before...)
			i.before = func() { i.ok(i.Commit(t.Context(), i.decided(b, test.fact))) }
			if err := i.Commit(t.Context(), i.decided(a, test.fact)); !errors.Is(err, port.ErrNoSlot) {
				t.Errorf("got %v, want ErrNoSlot", err)
			}
			if held := i.held(); len(held) != limit || held["slot#000000"] != "b" {
				t.Errorf("got slots %v, want one of b", held)
			}
		})
	}
}

// TestReleaseKeepsTheSlotOfAnother: the slot in the record belongs to another
// run in the pool.
func TestReleaseKeepsTheSlotOfAnother(t *testing.T) {
	t.Parallel()
	for _, grants := range []bool{false, true} {
		i := interleave(t)
		a := i.created("a", run.Admitted{Pool: "p", Limit: 1})
		writes := []port.Write{released(a)}
		if grants {
			writes = append(writes, i.decided(i.created("b", run.Enqueued{Pool: "p", Limit: 1}), run.Granted{Limit: 1}))
		}
		i.occupy("slot#000000", "x")
		if err := i.Commit(t.Context(), writes...); err == nil {
			t.Error("got success, want an error")
		}
		if held := i.held(); held["slot#000000"] != "x" {
			t.Errorf("got slots %v, want the first of x", held)
		}
	}
}

// TestRunChangedDuringReconcile: the run of a stray slot is committed between
// the read and the write of Reconcile, which leaves it to the next call.
func TestRunChangedDuringReconcile(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	a := i.created("a", run.Admitted{Pool: "p", Limit: 1})
	i.remove("slot#000000")
	i.before = func() { i.ok(i.Commit(t.Context(), i.decided(a, run.CancelRequested{}))) }
	if n, err := i.Reconcile(t.Context(), "default", "p"); err != nil || n != 0 {
		t.Errorf("got %d changed, %v; want 0", n, err)
	}
	if held := i.held(); len(held) != 0 {
		t.Errorf("got slots %v, want none: the run released its slot", held)
	}
}

// TestSlotTakenDuringReconcile: the slot that Reconcile restores is taken
// meanwhile.
func TestSlotTakenDuringReconcile(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	i.created("a", run.Admitted{Pool: "p", Limit: 1})
	b := i.created("b")
	i.remove("slot#000000")
	i.before = func() { i.ok(i.Commit(t.Context(), i.decided(b, run.Admitted{Pool: "p", Limit: 1}))) }
	if n, err := i.Reconcile(t.Context(), "default", "p"); err != nil || n != 0 {
		t.Errorf("got %d changed, %v; want 0", n, err)
	}
	if held := i.held(); held["slot#000000"] != "b" {
		t.Errorf("got slots %v, want the first of b", held)
	}
	if n, err := i.Reconcile(t.Context(), "default", "p"); err != nil || n != 1 || len(i.held()) != 2 {
		t.Errorf("second call: got %d changed, slots %v, %v", n, i.held(), err)
	}
}

// expired creates a run that ends, with an open heartbeat, and expires.
func (i *interleaved) expired(id string) {
	i.Helper()
	r := i.created(id)
	w := i.decided(r, run.CancelRequested{})
	w.Heartbeat.Open = &run.Heartbeat{Attempt: 1, WorkerID: "old", At: i.clock.Now()}
	i.ok(i.Commit(i.Context(), w))
	i.clock.Advance(w.Run.ExpiresAt.Sub(i.clock.Now()) + time.Hour)
}

// TestRunRecreatedDuringPurge: an expired run is replaced between the read and
// the deletes of Purge, which leaves the new run and its heartbeats.
func TestRunRecreatedDuringPurge(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	i.expired("a")
	fresh := run.Heartbeat{Attempt: 1, WorkerID: "new", At: i.clock.Now()}
	i.before = func() {
		w := port.WriteOf(run.New(export("a"), i.clock.Now()))
		w.Heartbeat.Open = &fresh
		_, err := i.Create(t.Context(), w, nil)
		i.ok(err)
	}
	if _, err := i.Purge(t.Context(), i.clock.Now(), 10); err != nil {
		t.Fatal(err)
	}
	ref := run.Ref{Tenant: "default", ID: "a"}
	if _, err := i.Load(t.Context(), ref); err != nil {
		t.Errorf("new run: %v", err)
	}
	if b, err := i.LastHeartbeat(t.Context(), ref); err != nil || b.WorkerID != "new" {
		t.Errorf("new run's heartbeat: got %+v, %v", b, err)
	}
}

// TestIDTakenMeanwhile: another request creates the run first, in place of none
// or of an expired one.
func TestIDTakenMeanwhile(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		for name, key := range map[string]*port.IdempotencyKey{"plain": nil, "with a key": {Key: "k", Digest: "d"}} {
			i := interleave(t)
			if old {
				i.expired("a")
				i.later = 1 // the first request finds the expired run
			}
			other := export("a")
			other.CorrelationID = "other"
			i.before = func() {
				_, err := i.Create(t.Context(), port.WriteOf(run.New(other, i.clock.Now())), nil)
				i.ok(err)
			}
			_, err := i.Create(t.Context(), port.WriteOf(run.New(export("a"), i.clock.Now())), key)
			r, failed := i.Load(t.Context(), run.Ref{Tenant: "default", ID: "a"})
			if !errors.Is(err, port.ErrConflict) || failed != nil || r.CorrelationID != "other" {
				t.Errorf("%s, after an expired run %v: got %v and %q, %v", name, old, err, r.CorrelationID, failed)
			}
		}
	}
}

// TestKeyTakenMeanwhile: another request uses the idempotency key first, which
// was free or an expired run's.
func TestKeyTakenMeanwhile(t *testing.T) {
	t.Parallel()
	key := &port.IdempotencyKey{Key: "k", Digest: "d"}
	for _, old := range []bool{false, true} {
		i := interleave(t)
		use := func(id string) *run.Run {
			existing, err := i.Create(t.Context(), port.WriteOf(run.New(export(id), i.clock.Now())), key)
			i.ok(err)
			return existing
		}
		if old {
			use("old")
			r, err := i.Load(t.Context(), run.Ref{Tenant: "default", ID: "old"})
			i.ok(err)
			w := i.decided(r, run.CancelRequested{})
			i.ok(i.Commit(t.Context(), w))
			i.clock.Advance(w.Run.ExpiresAt.Sub(i.clock.Now()) + time.Hour)
			i.later = 1 // the first request finds the expired run's use
		}
		i.before = func() { use("first") }
		if existing := use("second"); existing == nil || existing.ID != "first" {
			t.Errorf("after an expired run %v: got existing %+v, want the first", old, existing)
		}
		if _, err := i.Load(t.Context(), run.Ref{Tenant: "default", ID: "second"}); !errors.Is(err, port.ErrNotFound) {
			t.Errorf("after an expired run %v: second run: got %v, want ErrNotFound", old, err)
		}
	}
}

// TestTTLKeepsRecordsWithOutputs: the table's TTL deletes an expired record
// after its output was deleted, not before.
func TestTTLKeepsRecordsWithOutputs(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	_, err := i.client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("sortie"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(schema.TTL), Enabled: aws.Bool(true)},
	})
	i.ok(err)
	r := i.created("a")
	for _, c := range exportCommits() {
		if _, last := c.fact.(run.OutputDeleted); last {
			i.clock.Advance(r.ExpiresAt.Sub(i.clock.Now()) + time.Hour)
			if n := i.db.Expire(); n != 0 {
				t.Errorf("got %d items deleted while the output exists, want 0", n)
			}
		}
		w := i.decided(r, c.fact)
		i.ok(i.Commit(t.Context(), w))
		r = w.Run
		r.Version++
	}
	if n := i.db.Expire(); n != 1 {
		t.Errorf("got %d items deleted, want the record", n)
	}
	if _, err := i.Load(t.Context(), r.Ref()); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}
