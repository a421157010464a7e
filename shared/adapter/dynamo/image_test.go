package dynamo_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// images reads all new images of a table's stream.
func images(t *testing.T, cfg aws.Config, table string) (all []json.RawMessage) {
	t.Helper()
	described, err := dynamodb.NewFromConfig(cfg).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	const api = "DynamoDBStreams_20120810."
	stream := map[string]any{"StreamArn": described.Table.LatestStreamArn}
	var shards struct {
		StreamDescription struct{ Shards []struct{ ShardId string } }
	}
	awstest.Prepare(t, cfg, api+"DescribeStream", stream, &shards)
	for _, shard := range shards.StreamDescription.Shards {
		stream["ShardId"], stream["ShardIteratorType"] = shard.ShardId, "TRIM_HORIZON"
		var at struct{ ShardIterator string }
		awstest.Prepare(t, cfg, api+"GetShardIterator", stream, &at)
		for at.ShardIterator != "" {
			var page struct {
				NextShardIterator string
				Records           []struct {
					DynamoDB struct{ NewImage json.RawMessage } `json:"dynamodb"`
				}
			}
			awstest.Prepare(t, cfg, api+"GetRecords", map[string]any{"ShardIterator": at.ShardIterator}, &page)
			if len(page.Records) == 0 {
				break
			}
			for _, r := range page.Records {
				if r.DynamoDB.NewImage != nil {
					all = append(all, r.DynamoDB.NewImage)
				}
			}
			at.ShardIterator = page.NextShardIterator
		}
	}
	return all
}

// TestStreamHasEachEventOnce follows runs through commits of every kind.
func TestStreamHasEachEventOnce(t *testing.T) {
	t.Parallel()
	cfg, ctx := database(t), t.Context()
	name := table(t, cfg)
	s, err := dynamo.Open(cfg, dynamo.Config{Table: name, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	refs := map[run.Ref]bool{}
	for id, key := range map[string]*port.IdempotencyKey{"a": nil, "b": {Key: "k", Digest: "d"}} {
		d := run.New(export(id), time.Now().UTC())
		refs[d.Run.Ref()] = true
		if _, err := s.Create(ctx, port.WriteOf(d), key); err != nil {
			t.Fatal(err)
		}
		for _, c := range exportCommits() {
			r, err := s.Load(ctx, d.Run.Ref())
			if err != nil {
				t.Fatal(err)
			}
			if d, err = run.Decide(r, c.fact, time.Now().UTC()); err != nil {
				t.Fatal(err)
			}
			if c.heartbeat != nil {
				d.Heartbeat = c.heartbeat(time.Now())
			}
			if err := s.Commit(ctx, port.WriteOf(d)); err != nil {
				t.Fatal(err)
			}
		}
		r, err := s.Load(ctx, d.Run.Ref())
		if err != nil {
			t.Fatal(err)
		}
		restarted(t, s, r, 60)
	}
	received := map[run.Ref][]run.Event{}
	for _, image := range images(t, cfg, name) {
		r, events, err := dynamo.NewEvents(image)
		if err != nil {
			t.Fatal(err)
		}
		received[r.Ref()] = append(received[r.Ref()], events...)
	}
	for ref := range refs {
		want, err := s.Events(ctx, ref, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(want) < 60 {
			t.Errorf("got %d events, want more", len(want))
		}
		if diff := cmp.Diff(want, received[ref], cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
			t.Errorf("events of %s (-want +got):\n%s", ref.ID, diff)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		cfg := database(t)
		name := table(t, cfg)
		s, err := dynamo.Open(cfg, dynamo.Config{Table: name, Clock: clock.System{}, PlainItems: plain})
		if err != nil {
			t.Fatal(err)
		}
		porttest.Notes(t, s, func() (notes []port.Note) {
			for _, image := range images(t, cfg, name) {
				c, err := dynamo.ChangeOf(image)
				if err != nil {
					t.Fatal(err)
				}
				notes = append(notes, c.Notes...)
				if r, events, err := dynamo.NewEvents(image); r.ID != "" || len(events) > 0 || err != nil {
					t.Errorf("got run %q with %d events, %v, want none", r.ID, len(events), err)
				}
			}
			return notes
		})
	}
}
