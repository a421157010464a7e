package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	feedStream = "events/default"
	// feedEvents is the number of events in the resumed stream, feedBatch the events of one
	// append, and feedWaits the number of measured waits.
	feedEvents = 100_000
	feedBatch  = 100
	feedWaits  = 1000
	// The targets on two cores are printed with the figures and not asserted.
	feedAppendGoal = 5000
	feedResumeGoal = 2 * time.Second
)

// measureFeed measures a stream of signed events in SQLite: appends that are synced to disk,
// the resumption of a reader from the start, and the wake-up of a reader at the end.
func measureFeed(ctx context.Context, t *table) error {
	db, remove, err := newDB(ctx)
	if err != nil {
		return err
	}
	defer remove()
	feed, err := sqlite.NewFeed(ctx, db, sqlite.FeedConfig{Clock: clock.System{}, Retention: time.Hour})
	if err != nil {
		return err
	}
	key, err := events.NewKey(make([]byte, 32))
	if err != nil {
		return err
	}
	w := &feedWriter{feed: feed, key: key}
	if err := w.fill(ctx, feedEvents/10); err != nil { // warm-up
		return err
	}
	w.appending = 0
	startedAt := time.Now()
	if err := w.fill(ctx, feedEvents-w.size()); err != nil {
		return err
	}
	count := float64(feedEvents - feedEvents/10)
	const name = "stream of signed events, SQLite"
	t.add(name, fmt.Sprintf("signed, appended and synced, batches of %d", feedBatch), "%.0f/s (goal %d/s)", count/time.Since(startedAt).Seconds(), feedAppendGoal)
	t.add(name, "of this the feed alone", "%.0f/s", count/w.appending.Seconds())
	startedAt = time.Now()
	size, err := resume(ctx, feed)
	if err != nil {
		return err
	}
	took := time.Since(startedAt)
	t.add(name, fmt.Sprintf("%d events resumed", feedEvents), "%.2f s (goal %.0f s), %.0f MiB", took.Seconds(), feedResumeGoal.Seconds(), mebi(size))
	return measureWaits(ctx, t, name, feed, w)
}

// feedWriter appends to the stream like a relay.
type feedWriter struct {
	feed port.Feed
	key  events.Key
	tree events.Tree
	// appending is the total time spent in appends to the feed.
	appending time.Duration
}

func (w *feedWriter) size() int { return int(w.tree.Size) }

func (w *feedWriter) fill(ctx context.Context, n int) error {
	for range n / feedBatch {
		if err := w.append(ctx, feedBatch); err != nil {
			return err
		}
	}
	return nil
}

// append signs events on all cores, adds them to the tree, and appends them.
func (w *feedWriter) append(ctx context.Context, n int) error {
	records, payloads, errs := make([]port.FeedRecord, n), make([][]byte, n), make([]error, n)
	each(n, runtime.NumCPU(), func(i int) { records[i], payloads[i], errs[i] = w.sign(ctx, w.size()+i) })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, payload := range payloads {
		tree, err := w.tree.Add(payload)
		if err != nil {
			return err
		}
		w.tree = tree
	}
	startedAt := time.Now()
	head, err := w.feed.Head(ctx, feedStream)
	if err != nil {
		return err
	}
	if known, err := w.feed.Positions(ctx, feedStream, records); err != nil || len(known) > 0 {
		return fmt.Errorf("got %d known events, want 0: %w", len(known), err)
	}
	root := w.tree.Root()
	_, err = w.feed.Append(ctx, feedStream, port.Batch{After: head.Newest, Records: records, State: root[:]})
	w.appending += time.Since(startedAt)
	return err
}

// sign returns the i-th event of the stream, signed. Each run has six events.
func (w *feedWriter) sign(ctx context.Context, i int) (port.FeedRecord, []byte, error) {
	now := time.Now().UTC()
	id, task := ulid.MustNew(ulid.Timestamp(now), rand.Reader).String(), fmt.Sprintf("export_mods_%d_9f3a1c2b", 1_772_352_000_000+i/6)
	payload, err := json.Marshal(events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(id), EventType: eventtype.Started, OccurredAt: now,
		IdempotencyKey: events.RunKey(eventtype.Started, task, 1, 0), CorrelationID: "0f8fad5b-d9cb-469f-a165-70867728950e",
		TenantID: "default", ProjectID: "default", Actor: events.ActorOf("worker:vm-90ab4121", nil),
		Job: &events.Job{
			ID: task, Type: events.JobExport, RunID: task, Status: events.StatusRunning, Attempt: 1, LeaseID: "lease_default-3",
			TaskRunnerID: "tr_vm-90ab4121", State: "Running", From: "ContainerCreating", Seq: i%6 + 1,
		},
	})
	if err != nil {
		return port.FeedRecord{}, nil, err
	}
	signed, err := events.Sign(ctx, payload, w.key)
	return port.FeedRecord{ID: id, At: now, Data: signed}, payload, err
}

// resume reads the whole stream and returns the size of its records in bytes.
func resume(ctx context.Context, feed port.Feed) (size int64, err error) {
	after := int64(0)
	for after < feedEvents {
		page, err := feed.Read(ctx, feedStream, after, port.MaxFeedRecords)
		if err != nil || len(page) == 0 || page[0].Position != after+1 {
			return size, fmt.Errorf("got %d events behind position %d: %w", len(page), after, err)
		}
		for _, r := range page {
			size += int64(len(r.Data))
		}
		after = page[len(page)-1].Position
	}
	return size, nil
}

// measureWaits measures the time from the start of an append until a waiting reader has the
// event.
func measureWaits(ctx context.Context, t *table, name string, feed port.Feed, w *feedWriter) error {
	latencies := make([]time.Duration, feedWaits)
	type arrival struct {
		at  time.Time
		err error
	}
	for i := range latencies {
		after, arrived := int64(w.size()), make(chan arrival, 1)
		waiting := make(chan struct{})
		go func() {
			close(waiting)
			err := feed.Wait(ctx, feedStream, after)
			if err == nil {
				_, err = feed.Read(ctx, feedStream, after, 1)
			}
			arrived <- arrival{time.Now(), err}
		}()
		<-waiting
		pause(time.Millisecond)
		startedAt := time.Now()
		if err := w.append(ctx, 1); err != nil {
			return err
		}
		end := <-arrived
		if end.err != nil {
			return end.err
		}
		latencies[i] = end.at.Sub(startedAt)
	}
	t.add(name, "one event signed, synced and read by a waiting reader, p50 / p99", "%.2f / %.2f ms",
		millis(percentile(latencies, 0.5)), millis(percentile(latencies, 0.99)))
	return nil
}
