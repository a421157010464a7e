package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// ahead is the host's clock plus an offset.
type ahead struct {
	clock.System
	by atomic.Int64
}

func (a *ahead) Now() time.Time          { return a.System.Now().Add(time.Duration(a.by.Load())) }
func (a *ahead) Advance(d time.Duration) { a.by.Add(int64(d)) }

// feedStage is a table with two feeds.
type feedStage struct {
	porttest.FeedHarness
	Table string
	// Again returns another feed, which has read nothing.
	Again func() *dynamo.Feed
}

func openFeed(t *testing.T, cfg aws.Config, plain bool) feedStage {
	t.Helper()
	now, name := &ahead{}, table(t, cfg)
	feed := func() *dynamo.Feed {
		s, err := dynamo.Open(cfg, dynamo.Config{Table: name, Clock: now, PlainItems: plain})
		if err != nil {
			t.Fatal(err)
		}
		f, err := dynamo.NewFeed(s, dynamo.FeedConfig{Retention: time.Hour, WaitInterval: 5 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	return feedStage{Table: name, Again: feed, FeedHarness: porttest.FeedHarness{
		Feed: feed(), Other: feed(), Retention: time.Hour, Now: now.Now, Advance: now.Advance,
		Lose: func(stream string) {
			db := dynamodb.NewFromConfig(cfg)
			for _, is := range stored(t, db, name, "#feed#"+stream) {
				if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: keyOf(is)}); err != nil {
					t.Fatal(err)
				}
			}
		},
	}}
}

// TestBatchesAreDeletedByTheTTL lets the table delete some expired batches, in any order,
// and others not yet. A batch is not deleted before it expires.
func TestBatchesAreDeletedByTheTTL(t *testing.T) {
	t.Parallel()
	cfg := database(t)
	h := openFeed(t, cfg, false)
	db, ctx := dynamodb.NewFromConfig(cfg), t.Context()
	for i := range 60 {
		head, err := h.Head(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		b := port.Batch{After: head.Newest, Mark: []byte("m")}
		for n := range i%3 + 1 {
			b.Records = append(b.Records, port.FeedRecord{ID: fmt.Sprint(i, "-", n), At: h.Now()})
		}
		if _, err := h.Append(ctx, "s", b); err != nil {
			t.Fatal(err)
		}
		h.Advance(time.Minute)
	}
	h.Advance(29*time.Minute + 30*time.Second)
	deleted := 0
	for i, is := range stored(t, db, h.Table, "#feed#s") {
		at, expires := is[schema.TTL].(*types.AttributeValueMemberN)
		if !expires || i%3 == 0 {
			continue
		}
		if seconds, err := strconv.ParseInt(at.Value, 10, 64); err != nil || seconds >= h.Now().Unix() {
			continue
		}
		deleted++
		if _, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &h.Table, Key: keyOf(is)}); err != nil {
			t.Fatal(err)
		}
	}
	if deleted < 30 {
		t.Fatalf("got %d items to delete, want more", deleted)
	}
	fresh := h.Again()
	for name, feed := range map[string]port.Feed{"feed": h.Feed, "other": h.Other, "fresh": fresh} {
		head, err := feed.Head(ctx, "s")
		if err != nil || head.Newest != 120 || head.Oldest != 61 {
			t.Errorf("%s: got positions %d to %d, %v, want 61 to 120", name, head.Oldest, head.Newest, err)
		}
		records, err := feed.Read(ctx, "s", 0, 1000)
		if err != nil || len(records) != 60 || records[0].Position != 61 || records[59].Position != 120 {
			t.Errorf("%s: got %d records, %v, want those of 61 to 120", name, len(records), err)
		}
		marks, err := feed.Marks(ctx, "s", 0, 1000)
		if err != nil || len(marks) != 30 {
			t.Errorf("%s: got %d marks, %v, want 30", name, len(marks), err)
		}
	}
}

// interrupted is a client that makes another call before its next write.
type interrupted struct {
	dynamo.API
	first func()
}

func (i *interrupted) interrupt() {
	if do := i.first; do != nil {
		i.first = nil
		do()
	}
}

func (i *interrupted) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	i.interrupt()
	return i.API.TransactWriteItems(ctx, in, o...)
}

func (i *interrupted) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	i.interrupt()
	return i.API.UpdateItem(ctx, in, o...)
}

// TestOvertakenAppendConflicts lets another writer append, or begin the lost stream
// again, between the reads and the write of an append.
func TestOvertakenAppendConflicts(t *testing.T) {
	t.Parallel()
	cfg, ctx := database(t), t.Context()
	h := openFeed(t, cfg, false)
	client := &interrupted{API: dynamodb.NewFromConfig(cfg)}
	store, err := dynamo.New(client, dynamo.Config{Table: h.Table, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	feed, err := dynamo.NewFeed(store, dynamo.FeedConfig{Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	batch := func(after int64, ids ...string) port.Batch {
		b := port.Batch{After: after, State: fmt.Append(nil, ids)}
		for _, id := range ids {
			b.Records = append(b.Records, port.FeedRecord{ID: id, At: h.Now()})
		}
		return b
	}
	other := func(b port.Batch) func() {
		return func() {
			if _, err := h.Append(ctx, "s", b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, row := range []struct {
		name   string
		first  func()
		b      port.Batch
		newest int64
	}{
		{"new stream", other(batch(0, "a", "b")), batch(0, "x"), 2},
		{"stream", other(batch(2, "c")), batch(2, "x", "y"), 3},
		{"state alone", other(batch(3, "d")), batch(3), 4},
		{"another epoch", func() { h.Lose("s"); other(batch(0, "e", "f", "g", "h"))() }, batch(4, "x"), 4},
	} {
		client.first = row.first
		_, err := feed.Append(ctx, "s", row.b)
		if conflict, ok := errors.AsType[*port.FeedConflict](err); !ok || conflict.Newest != row.newest || client.first != nil {
			t.Errorf("%s: got %v, want a conflict with newest position %d", row.name, err, row.newest)
		}
		if found, err := feed.Positions(ctx, "s", batch(0, "x", "y").Records); err != nil || len(found) > 0 {
			t.Errorf("%s: got positions %v, %v of refused records, want none", row.name, found, err)
		}
	}
	if head, err := feed.Append(ctx, "s", batch(4, "i")); err != nil || head.Newest != 5 {
		t.Errorf("got head %+v, %v, want position 5", head, err)
	}
}

// TestPositionsOfMoreRecordsThanAreRemembered appends more records by another process, in
// the last minute, than a feed remembers.
func TestPositionsOfMoreRecordsThanAreRemembered(t *testing.T) {
	t.Parallel()
	h, ctx := openFeed(t, database(t), false), t.Context()
	const batches = 103
	at := h.Now()
	id := func(position int64) string { return fmt.Sprintf("id-%d", position) }
	for after := int64(0); after < batches*port.MaxFeedRecords; after += port.MaxFeedRecords {
		b := port.Batch{After: after}
		for n := range int64(port.MaxFeedRecords) {
			b.Records = append(b.Records, port.FeedRecord{ID: id(after + 1 + n), At: at})
		}
		if _, err := h.Other.Append(ctx, "s", b); err != nil {
			t.Fatal(err)
		}
		for _, position := range []int64{1, after/2 + 1, after + 1, after + port.MaxFeedRecords} {
			if after < (batches-3)*port.MaxFeedRecords {
				break // the feed has read nothing
			}
			want := port.FeedRecord{ID: id(position), At: at}
			found, err := h.Positions(ctx, "s", []port.FeedRecord{want, {ID: "unknown", At: at}})
			if err != nil || len(found) != 1 || found[want.ID] != position {
				t.Errorf("with %d records: got positions %v, %v, want %s at %d", after+port.MaxFeedRecords, found, err, want.ID, position)
			}
		}
	}
}

// TestRestoredTableHasOtherEpochs copies the items of a stream to another table.
func TestRestoredTableHasOtherEpochs(t *testing.T) {
	t.Parallel()
	cfg, ctx := database(t), t.Context()
	h, restored, db := openFeed(t, cfg, false), openFeed(t, cfg, false), dynamodb.NewFromConfig(cfg)
	batch := func(after int64) port.Batch {
		return port.Batch{After: after, Records: []port.FeedRecord{{ID: fmt.Sprint(after), At: h.Now()}}}
	}
	before, err := h.Append(ctx, "s", batch(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range stored(t, db, h.Table, "#feed#s") {
		if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &restored.Table, Item: is}); err != nil {
			t.Fatal(err)
		}
	}
	after, err := restored.Append(ctx, "s", batch(1))
	if err != nil || after.Newest != 2 || after.Epoch == before.Epoch {
		t.Errorf("got head %+v, %v, want position 2 in another epoch than %s", after, err, before.Epoch)
	}
	if again, err := restored.Head(ctx, "s"); err != nil || again.Epoch != after.Epoch {
		t.Errorf("got epoch %s, %v, want %s", again.Epoch, err, after.Epoch)
	}
}

// stored returns the items under a partition key.
func stored(t *testing.T, db *dynamodb.Client, name, pk string) (items []item) {
	t.Helper()
	pages := dynamodb.NewQueryPaginator(db, &dynamodb.QueryInput{
		TableName: &name, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#pk = :pk"),
		ExpressionAttributeNames:  map[string]string{"#pk": schema.Partition.Name},
		ExpressionAttributeValues: item{":pk": &types.AttributeValueMemberS{Value: pk}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

func TestFeed(t *testing.T) {
	t.Parallel()
	porttest.Feed(t, func(t *testing.T) porttest.FeedHarness { return openFeed(t, database(t), false).FeedHarness })
}

func TestFeedOfPlainItems(t *testing.T) {
	t.Parallel()
	porttest.Feed(t, func(t *testing.T) porttest.FeedHarness { return openFeed(t, database(t), true).FeedHarness })
}

// TestFeedWithLaggingReads runs the suite with eventually consistent reads that lag by a
// second. All pages are returned in part.
func TestFeedWithLaggingReads(t *testing.T) {
	t.Parallel()
	porttest.Feed(t, func(t *testing.T) porttest.FeedHarness {
		db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}, Seed: 1, Lag: time.Second, Stale: 0.5, Plan: awsfake.Seeded(1, 1, awsfake.Partial)})
		h := openFeed(t, db.AWS(), true)
		h.CatchUp = db.Settle
		return h.FeedHarness
	})
}

// TestFeedWithFaults: the feed hides conflicts, throttling, lost answers and partial
// answers.
func TestFeedWithFaults(t *testing.T) {
	t.Parallel()
	porttest.Feed(t, func(t *testing.T) porttest.FeedHarness {
		seed := uint64(crc32.ChecksumIEEE([]byte(t.Name())))
		return openFeed(t, awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}, Seed: seed, Plan: awsfake.Seeded(seed, 0.1,
			awsfake.Lost, awsfake.Unsure, awsfake.Throttled, awsfake.Conflicted, awsfake.Partial)}).AWS(), false).FeedHarness
	})
}
