package dynamo_test

import (
	crypto "crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/cost/units"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// signedEvents returns signed events of runs, of the types of an export. Each has ids
// and digests of its own.
func signedEvents(t *testing.T, now time.Time, n int) []port.FeedRecord {
	t.Helper()
	key, err := events.NewKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	records := make([]port.FeedRecord, n)
	seconds := func() float64 { return float64(rand.N(60_000)) / 1000 }
	for i := range records {
		kind := []string{"accepted", "admitted", "machine_created", "started", "attempt_ended", "completed"}[i%6]
		example, err := os.ReadFile(filepath.Join("../../../events/examples", "job."+kind+".json"))
		if err != nil {
			t.Fatal(err)
		}
		e, err := events.Parse(example)
		if err != nil {
			t.Fatal(err)
		}
		id := ulid.MustNew(ulid.Timestamp(now), crypto.Reader).String()
		run := ulid.MustNew(ulid.Timestamp(now), crypto.Reader).String()
		e.EventID, e.OccurredAt, e.CorrelationID = events.ID(id), now, crypto.Text()+crypto.Text()[:10]
		e.IdempotencyKey = strings.Replace(e.IdempotencyKey, e.Job.ID, "export_"+run, 1)
		e.Job.ID, e.Job.RunID, e.Job.TaskRunnerID = "export_"+run, "export_"+run, "tr_"+run[12:]
		e.Job.PayloadDigest = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(run)))
		if kind == "accepted" {
			e.Actor.Scopes = []string{"runs:read", "runs:write", "events:read"}
		}
		if kind == "completed" {
			e.Metrics = map[string]any{
				"containerCreationSeconds": seconds(), "executionSeconds": seconds(), "queueSeconds": seconds(), "totalSeconds": seconds(),
				"stateTransitionTimestamps": map[string]time.Time{"Pending": now, "ContainerCreating": now, "Running": now, "Terminating": now, "Completed": now},
			}
		}
		payload, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := events.Sign(t.Context(), payload, key)
		if err != nil {
			t.Fatal(err)
		}
		records[i] = port.FeedRecord{ID: id, At: now, Data: signed}
	}
	return records
}

// TestFeedCosts appends signed events in batches of several sizes, as a relay does.
func TestFeedCosts(t *testing.T) {
	t.Parallel()
	cfg := database(t)
	spent := &meter{API: dynamodb.NewFromConfig(cfg), T: t, table: table(t, cfg)}
	s, err := dynamo.New(spent, dynamo.Config{Table: spent.table, Clock: clock.System{}, Consumed: spent.consumed, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	feed, err := dynamo.NewFeed(s, dynamo.FeedConfig{Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	state := make([]byte, 450) // of a tree with a million events
	_, _ = crypto.Read(state)
	for _, row := range []struct {
		events int
		most   float64 // write units of an event
	}{{1, 4}, {3, 1.4}, {10, 0.8}, {30, 0.55}, {100, 0.45}, {170, 0.45}} {
		stream := fmt.Sprint("events/", row.events)
		const batches = 4
		bytes := 0
		for i := range batches + 1 {
			if i == 1 {
				spent.take() // the first batch has found no head
			}
			records := signedEvents(t, time.Now(), row.events)
			head, err := feed.Head(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			if known, err := feed.Positions(t.Context(), stream, records); err != nil || len(known) > 0 {
				t.Fatalf("got positions %v, %v, want none", known, err)
			}
			if _, err := feed.Append(t.Context(), stream, port.Batch{After: head.Newest, Records: records, State: state}); err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				bytes += r.Size()
			}
		}
		wru, rru := spent.take()
		wru, rru = wru/batches, rru/batches
		perEvent := wru / float64(row.events)
		kept := 0.0
		for _, is := range stored(t, dynamodb.NewFromConfig(cfg), spent.table, "#feed#"+stream) {
			kept += units.Kilobytes(is, size)
		}
		t.Logf("batch of %3d events of %4d bytes: %6.1f WRU and %4.1f RRU, %5.2f WRU for an event, %.2f KB stored; %5.0f events/s at 1,000 WRU/s",
			row.events, bytes/(batches+1)/row.events, wru, rru, perEvent, kept/float64(row.events*(batches+1)), 1000/perEvent)
		if perEvent > row.most {
			t.Errorf("batches of %d events: got %.2f write units for an event, want at most %.2f", row.events, perEvent, row.most)
		}
	}
}
