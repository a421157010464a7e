package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// unsure applies each write and loses the first response to it.
type unsure struct {
	dynamo.API
	lose bool
}

var lost = &types.InternalServerError{Message: aws.String("the answer was lost")}

func (u *unsure) lost(err error) error {
	if err == nil && u.lose {
		u.lose = false
		return lost
	}
	return err
}

func (u *unsure) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	out, err := u.API.PutItem(ctx, in, o...)
	return out, u.lost(err)
}

func (u *unsure) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := u.API.UpdateItem(ctx, in, o...)
	return out, u.lost(err)
}

func (u *unsure) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := u.API.TransactWriteItems(ctx, in, o...)
	return out, u.lost(err)
}

// TestLostAnswerIsNoConflict applies each kind of write and loses the response:
// the retry is recognized as the same write, not as a later one.
func TestLostAnswerIsNoConflict(t *testing.T) {
	t.Parallel()
	cfg, ctx := database(t), t.Context()
	db := &unsure{API: dynamodb.NewFromConfig(cfg)}
	s, err := dynamo.New(db, dynamo.Config{Table: table(t, cfg), Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	key := port.IdempotencyKey{Key: "k", Digest: "d"}
	for name, under := range map[string]*port.IdempotencyKey{"plain": nil, "keyed": &key} {
		db.lose = true
		d := run.New(export(name), time.Now().UTC())
		if existing, err := s.Create(ctx, port.WriteOf(d), under); err != nil || existing != nil || db.lose {
			t.Fatalf("%s: got created %v, %v", name, existing, err)
		}
		for _, c := range exportCommits() {
			r, err := s.Load(ctx, d.Run.Ref())
			if err != nil {
				t.Fatal(err)
			}
			if d, err = run.Decide(r, c.fact, time.Now().UTC()); err != nil {
				t.Fatal(err)
			}
			if db.lose = true; c.heartbeat != nil {
				d.Heartbeat = c.heartbeat(time.Now())
			}
			if err := s.Commit(ctx, port.WriteOf(d)); err != nil {
				t.Fatalf("%s: %s: got %v", name, c.name, err)
			}
			db.lose = false
			if err := s.Commit(ctx, port.WriteOf(d)); !errors.Is(err, port.ErrConflict) {
				t.Fatalf("%s: %s, decided once and committed twice: got %v", name, c.name, err)
			}
		}
	}
}

// TestLostAnswerOfAJobIsNoConflict does the same for the writes of a job.
func TestLostAnswerOfAJobIsNoConflict(t *testing.T) {
	t.Parallel()
	cfg, ctx := database(t), t.Context()
	db := &unsure{API: dynamodb.NewFromConfig(cfg)}
	s, err := dynamo.New(db, dynamo.Config{Table: table(t, cfg), Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	j := nightly(time.Now().UTC())
	var w port.Write
	for _, step := range []struct {
		name   string
		change func()
		do     func() error
	}{
		{"create", func() {}, func() error { return s.SaveJob(ctx, j) }},
		{"save", func() { j.Paused = true }, func() error { return s.SaveJob(ctx, j) }},
		{"change", func() { j.Version++ }, func() error { return s.SaveJob(ctx, j) }},
		{"fire", func() { w, j = port.WriteOf(run.New(firing(j), time.Now())), advance(j) }, func() error { return s.FireJob(ctx, j, w) }},
		{"delete", func() {}, func() error { return s.DeleteJob(ctx, j) }},
	} {
		step.change()
		db.lose = true
		if err := step.do(); err != nil || db.lose {
			t.Fatalf("%s: got %v, want success", step.name, err)
		}
		if err := step.do(); !errors.Is(err, port.ErrConflict) {
			t.Fatalf("%s, repeated: got %v, want ErrConflict", step.name, err)
		}
		j.Revision++
	}
}

// restarted commits a large event n times.
func restarted(t *testing.T, s *dynamo.Store, r run.Run, n int) run.Run {
	t.Helper()
	for range n {
		r.EventCount++
		e := run.Event{
			ID: fmt.Sprintf("%026d", r.EventCount), Seq: r.EventCount, Type: run.EventRestarted, At: r.CreatedAt,
			State: r.State, Message: strings.Repeat(fmt.Sprintf("%x ", r.EventCount*7919), 30),
		}
		if err := s.Commit(t.Context(), port.Write{Run: r, Events: []run.Event{e}}); err != nil {
			t.Fatalf("event %d: got %v", e.Seq, err)
		}
		r.Version++
	}
	return r
}

// raw returns all items of a run.
func raw(t *testing.T, cfg aws.Config, table, id string) []item {
	t.Helper()
	out, err := dynamodb.NewFromConfig(cfg).Query(t.Context(), &dynamodb.QueryInput{
		TableName: &table, KeyConditionExpression: aws.String("#pk = :pk"), ExpressionAttributeNames: map[string]string{"#pk": schema.Partition.Name},
		ExpressionAttributeValues: item{":pk": &types.AttributeValueMemberS{Value: "default#run#" + id}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Items
}

// TestRunOfManyEventsStaysSmall checks the sizes of the items of a run with
// many events, and that Events returns them in order.
func TestRunOfManyEventsStaysSmall(t *testing.T) {
	t.Parallel()
	cfg, ctx := database(t), t.Context()
	name := table(t, cfg)
	s, err := dynamo.Open(cfg, dynamo.Config{Table: name, Clock: clock.System{}, TTLGrace: 365 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	const many = 200
	w := port.WriteOf(run.New(export("many"), time.Now().UTC()))
	if _, err := s.Create(ctx, w, nil); err != nil {
		t.Fatal(err)
	}
	r := w.Run
	r.Version = 1
	r = restarted(t, s, r, many-1)
	items := raw(t, cfg, name, "many")
	for _, is := range items {
		if kb := units.Kilobytes(is, size); kb > 4 {
			t.Errorf("got an item of %v KB", kb)
		}
	}
	if len(items) < 3 {
		t.Errorf("got %d items, want more", len(items))
	}
	for _, after := range []int{-1, 0, 1, 17, 100, many - 2, many - 1, many, many + 5} {
		for _, limit := range []int{1, 10, 1000} {
			events, err := s.Events(ctx, r.Ref(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if want := min(max(many-max(after, 0), 0), limit); len(events) != want {
				t.Fatalf("got %d events after %d with limit %d, want %d", len(events), after, limit, want)
			}
			for i, e := range events {
				if e.Seq != max(after, 0)+i+1 {
					t.Fatalf("after %d: got %d at %d", after, e.Seq, i)
				}
			}
		}
	}
	// The table's TTL would not delete the older events, so Purge deletes the
	// run without a delay.
	d, err := run.Decide(r, run.CancelRequested{}, time.Now().UTC())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, port.WriteOf(d)); err != nil {
		t.Fatal(err)
	}
	for _, is := range raw(t, cfg, name, "many") {
		if is[schema.TTL] != nil {
			t.Error("got an item with a TTL")
		}
	}
	if n, err := s.Purge(ctx, d.Run.ExpiresAt.Add(time.Second), 10); err != nil || n != 1 {
		t.Fatalf("got %d purged, %v; want 1", n, err)
	}
	if left := raw(t, cfg, name, "many"); len(left) > 0 {
		t.Errorf("got items %v, want no item", left)
	}
}

// TestPurgeWaitsForTheTTL checks that Purge deletes only records that the TTL did not delete
// within its grace period.
func TestPurgeWaitsForTheTTL(t *testing.T) {
	t.Parallel()
	cfg, ctx := database(t), t.Context()
	name := table(t, cfg)
	s, err := dynamo.Open(cfg, dynamo.Config{Table: name, Clock: clock.System{}, TTLGrace: 72 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	d := run.New(export("gone"), time.Now().UTC())
	if _, err := s.Create(ctx, port.WriteOf(d), nil); err != nil {
		t.Fatal(err)
	}
	d.Run.Version = 1
	if d, err = run.Decide(d.Run, run.CancelRequested{}, time.Now().UTC()); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, port.WriteOf(d)); err != nil {
		t.Fatal(err)
	}
	expires := d.Run.ExpiresAt
	ttl, ok := raw(t, cfg, name, "gone")[0][schema.TTL].(*types.AttributeValueMemberN)
	if want := fmt.Sprint(expires.Unix() + 1); !ok || ttl.Value != want {
		t.Fatalf("got TTL %v, want %s, one second after the record's expiry", ttl, want)
	}
	for after, want := range map[time.Duration]int{time.Hour: 0, 71 * time.Hour: 0} {
		if n, err := s.Purge(ctx, expires.Add(after), 10); err != nil || n != want {
			t.Fatalf("%s after the expiry: got %d, %v", after, n, err)
		}
	}
	if n, err := s.Purge(ctx, expires.Add(73*time.Hour), 10); err != nil || n != 1 {
		t.Fatalf("after the grace period: got %d, %v", n, err)
	}
}

func TestTaskIDsAreUnique(t *testing.T) {
	t.Parallel()
	s := open(t, dynamo.Config{})
	for i, want := range []bool{true, false} {
		r := export(fmt.Sprint("run-", i))
		r.TaskID = "one task"
		_, err := s.Create(t.Context(), port.WriteOf(run.New(r, time.Now().UTC())), nil)
		if want && err != nil || !want && !errors.Is(err, port.ErrConflict) {
			t.Fatalf("run %d: got %v", i, err)
		}
	}
}

func TestCommitOfTooManyRunsIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, dynamo.Config{})
	var writes []port.Write
	for i := range 101 {
		r := run.New(export(fmt.Sprint(i)), time.Now().UTC()).Run
		writes = append(writes, port.Write{Run: r})
	}
	if err := s.Commit(t.Context(), writes...); !fault.Is(err, fault.Internal) {
		t.Fatal(err)
	}
}
