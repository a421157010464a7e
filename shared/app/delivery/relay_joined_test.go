package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// joinedStage is a relay whose outbox and feed share a database.
type joinedStage struct {
	*relayStage
	db    *sqlite.DB
	store *sqlite.Store
	feed  *sqlite.Feed
	known map[string]delivery.Change // by id
	// fails, if it is not nil, returns the error of an append.
	fails func(stream string, b port.Batch) error
}

func newJoinedStage(t *testing.T) *joinedStage {
	t.Helper()
	s := &joinedStage{relayStage: newRelayStage(t, nil), known: map[string]delivery.Change{}}
	var err error
	if s.db, err = sqlitetest.Open(t.Context(), filepath.Join(sqlitetest.Folder(t), "sortie.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	if s.store, err = sqlite.NewStore(t.Context(), s.db, s.clock); err != nil {
		t.Fatal(err)
	}
	if s.feed, err = sqlite.NewFeed(t.Context(), s.db, sqlite.FeedConfig{Clock: s.clock, Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	s.bare = true
	s.relayTo(failingFeed{s.feed, s})
	return s
}

// failingFeed is a feed whose appends fail with the error of joinedStage.fails.
type failingFeed struct {
	port.Feed
	s *joinedStage
}

func (f failingFeed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	if f.s.fails != nil {
		if err := f.s.fails(stream, b); err != nil {
			return port.Head{}, err
		}
	}
	return f.Feed.Append(ctx, stream, b)
}

// put stores changes in the outbox.
func (s *joinedStage) put(changes ...delivery.Change) {
	s.tb.Helper()
	for _, c := range changes {
		s.known[c.ID] = c
		if err := s.store.SetAside(context.Background(), port.StoredChange{ID: c.ID, At: s.clock.Now(), Record: []byte("{}")}); err != nil {
			s.tb.Fatal(err)
		}
	}
}

func (s *joinedStage) drain() (delivery.Drained, error) {
	return s.relay.Drain(context.Background(), s.store, func(c port.StoredChange) delivery.Change { return s.known[c.ID] }, nil)
}

// commits returns the numbers of commits and written rows of a call.
func (s *joinedStage) commits(do func()) (commits, rows int64) {
	before := s.db.Stats()
	do()
	after := s.db.Stats()
	return after.Commits - before.Commits, after.Rows - before.Rows
}

// wants checks that the streams have the events of changes, and that the outbox is empty.
func (s *joinedStage) wants(changes ...delivery.Change) {
	s.tb.Helper()
	left, _, err := s.store.Stored(context.Background(), "", 1000)
	if err != nil || len(left) > 0 {
		s.tb.Fatalf("got %d changes in the outbox, %v, want none", len(left), err)
	}
	var got, want []string
	for after := int64(0); ; {
		page, err := s.feed.Read(context.Background(), port.EventStream("acme"), after, 1000)
		if err != nil {
			s.tb.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			got = append(got, r.ID)
		}
		after = page[len(page)-1].Position
	}
	for _, c := range changes {
		for _, e := range c.Events {
			want = append(want, e.ID)
		}
	}
	if !slices.Equal(got, want) {
		s.tb.Errorf("got %d events %v, want %d %v", len(got), got, len(want), want)
	}
}

// TestRelayNeedsOneCommit relays the changes of a page: their events are appended and they
// leave the outbox in one commit.
func TestRelayNeedsOneCommit(t *testing.T) {
	t.Parallel()
	s := newJoinedStage(t)
	all := s.changes("acme", 0, 60)
	s.put(all[:20]...)
	for i, next := range [][]delivery.Change{all[20:40], all[40:], nil} {
		commits, _ := s.commits(func() {
			if d, err := s.drain(); err != nil || d.Relayed != 20 {
				t.Fatalf("got %+v, %v, want 20 relayed changes", d, err)
			}
		})
		if want := int64(1); commits != want && i > 0 { // the first batch has no epoch for its checkpoint
			t.Errorf("drain %d: got %d commits, want %d", i, commits, want)
		}
		s.put(next...)
	}
	s.wants(all...)
}

// TestRelaysAtTheSameTimeAppendOnce drains one outbox in several goroutines while changes are
// added, with the relay of a started process and with one that has drained it before.
func TestRelaysAtTheSameTimeAppendOnce(t *testing.T) {
	t.Parallel()
	s := newJoinedStage(t)
	var all []delivery.Change
	for round := range 20 {
		next := s.changes("acme", len(all), 15)
		s.put(next...)
		all = append(all, next...)
		var turns sync.WaitGroup
		for range 4 {
			turns.Go(func() {
				if d, err := s.drain(); err != nil {
					t.Errorf("round %d: got %+v, %v", round, d, err)
				}
			})
		}
		turns.Wait()
	}
	s.wants(all...)
}

// TestChangeOfAnOldPageIsAppendedOnce appends changes by another relay, after a relay has read
// them in the outbox.
func TestChangeOfAnOldPageIsAppendedOnce(t *testing.T) {
	t.Parallel()
	s := newJoinedStage(t)
	all := s.changes("acme", 0, 9)
	for i := range 3 {
		s.put(all[i*3 : i*3+3]...)
		other := false
		_, err := s.relay.Drain(t.Context(), s.store, func(c port.StoredChange) delivery.Change {
			if !other {
				other = true
				if d, err := s.drain(); err != nil || d.Relayed != 3 {
					t.Errorf("got %+v, %v of the other relay", d, err)
				}
			}
			return s.known[c.ID]
		}, nil)
		if err != nil {
			t.Error(err)
		}
		s.wants(all[:i*3+3]...)
	}
}

// TestEventOfAnEarlierCommitIsAppendedOnce relays a change whose event is in the stream: an
// earlier version was killed before it removed the change.
func TestEventOfAnEarlierCommitIsAppendedOnce(t *testing.T) {
	t.Parallel()
	s := newJoinedStage(t)
	all := s.changes("acme", 0, 6)
	if done := s.relay.Relay(t.Context(), all[:3]); len(done.Redeliver) > 0 {
		t.Fatalf("got %+v", done)
	}
	s.put(all...)
	for range 2 {
		if d, err := s.drain(); err != nil || d.Left > 0 {
			t.Fatalf("got %+v, %v", d, err)
		}
	}
	s.wants(all...)
}

// TestLargeChangeIsAppendedOnce relays a change with more events than a batch, of which the
// second batch fails, between small ones.
func TestLargeChangeIsAppendedOnce(t *testing.T) {
	t.Parallel()
	s := newJoinedStage(t)
	first := s.changes("acme", 0, 3)
	s.put(first...)
	if d, err := s.drain(); err != nil || d.Left > 0 {
		t.Fatalf("got %+v, %v", d, err)
	}
	all := s.changes("acme", 3, 3)
	large := &all[1]
	for i := range port.MaxFeedRecords + 100 {
		at := large.At.Add(time.Duration(i) * time.Millisecond)
		large.Events = append(large.Events, run.Event{ID: run.EventID(at, fmt.Sprint("large ", i)), At: at})
	}
	s.put(all...)
	batches := 0
	s.fails = func(_ string, b port.Batch) error {
		if len(b.Records) == 0 {
			return nil
		}
		if batches++; batches == 3 {
			return fault.New(fault.Unavailable, "the disk is slow")
		}
		return nil
	}
	if d, err := s.drain(); err != nil || d.Left != 2 {
		t.Fatalf("got %+v, %v, want the large change and the next one left", d, err)
	}
	if left, _, err := s.store.Stored(t.Context(), "", 10); err != nil || len(left) != 2 || left[0].ID != large.ID {
		t.Fatalf("got %v, %v, want the large change in the outbox", left, err)
	}
	if d, err := s.drain(); err != nil || d.Left > 0 {
		t.Fatalf("got %+v, %v", d, err)
	}
	s.wants(append(first, all...)...)
}

// TestUnreadableChangeIsOneEvent drains an outbox with a change that cannot be read. It stays,
// and each drain finds its event.
func TestUnreadableChangeIsOneEvent(t *testing.T) {
	t.Parallel()
	s := newJoinedStage(t)
	all := s.changes("acme", 0, 2)
	s.put(all...)
	if _, err := s.drain(); err != nil {
		t.Fatal(err)
	}
	broken := s.changes("acme", 2, 1)
	broken[0].Err = errors.New("damaged")
	s.put(broken...)
	for range 3 {
		if d, err := s.drain(); err != nil || d.Left != 1 || len(d.Unreadable) != 1 {
			t.Fatalf("got %+v, %v, want an unreadable change", d, err)
		}
	}
	records, err := s.feed.Read(t.Context(), port.EventStream("acme"), 0, 100)
	if err != nil || len(records) != 3 {
		t.Fatalf("got %d events, %v, want 3", len(records), err)
	}
	if e, _, err := events.Unverified(records[2].Data); err != nil || !strings.HasSuffix(string(e.EventType), "unreadable") {
		t.Errorf("got %+v, %v, want relay.unreadable", e, err)
	}
}

// TestEncodedChangesAreTheSameEvents relays changes whose events were encoded by their commits,
// and the same ones that the relay encodes.
func TestEncodedChangesAreTheSameEvents(t *testing.T) {
	t.Parallel()
	var streams [2][]port.FeedRecord
	for i, encoded := range []bool{true, false} {
		s := newJoinedStage(t)
		all := s.changes("acme", 0, 5)
		for i, c := range all {
			if !encoded {
				continue
			}
			all[i].Change = port.Change{Run: run.Run{Tenant: "acme"}}
			for _, e := range c.Events {
				event := relayEvent("acme", e.ID, e.At)
				event.Notifier = &events.Notifier{Channel: "orch.jobs", Delivery: events.DeliveryDSSE}
				data, err := json.Marshal(event)
				if err != nil {
					t.Fatal(err)
				}
				all[i].Encoded = append(all[i].Encoded, port.FeedRecord{ID: e.ID, At: e.At, Data: data})
			}
		}
		s.put(all...)
		if d, err := s.drain(); err != nil || d.Relayed != 5 {
			t.Fatalf("got %+v, %v, want 5 relayed changes", d, err)
		}
		var err error
		if streams[i], err = s.feed.Read(t.Context(), port.EventStream("acme"), 0, 10); err != nil || len(streams[i]) != 5 {
			t.Fatalf("got %d events, %v, want 5", len(streams[i]), err)
		}
	}
	if diff := cmp.Diff(streams[1], streams[0]); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}
