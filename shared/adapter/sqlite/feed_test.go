package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func setupFeed(t testing.TB, path string) (*sqlite.Feed, *sqlite.DB, *clock.Virtual) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := clock.NewVirtual(newYear)
	return newFeed(t, db, now), db, now
}

func newFeed(t testing.TB, db *sqlite.DB, now clock.Clock) *sqlite.Feed {
	t.Helper()
	feed, err := sqlite.NewFeed(t.Context(), db, sqlite.FeedConfig{Clock: now, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return feed
}

// newForgetful returns a feed that forgets all streams.
func newForgetful(t testing.TB, db *sqlite.DB, now clock.Clock) *sqlite.Feed {
	t.Helper()
	feed, err := sqlite.NewFeed(t.Context(), db, sqlite.FeedConfig{Clock: now, Retention: time.Hour, Forget: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return feed
}

func TestFeed(t *testing.T) {
	t.Parallel()
	porttest.Feed(t, func(t *testing.T) porttest.FeedHarness {
		feed, db, now := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
		return porttest.FeedHarness{
			Feed: feed, Other: newFeed(t, db, now), Retention: time.Hour, Now: now.Now, Advance: now.Advance,
			Lose: func(stream string) {
				for _, table := range []string{"feed_records", "feed_marks", "feed_streams"} {
					change(t, db, fmt.Sprintf("DELETE FROM %s WHERE %s = (SELECT n FROM feed_streams WHERE stream = ?)",
						table, map[bool]string{true: "n", false: "stream"}[table == "feed_streams"]), stream)
				}
			},
		}
	})
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	porttest.Answers(t, func(t *testing.T) porttest.AnswersHarness {
		feed, db, now := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
		return porttest.AnswersHarness{AnswerFeed: feed, Other: newFeed(t, db, now), Retention: time.Hour, Now: now.Now, Advance: now.Advance}
	})
}

func change(t *testing.T, db *sqlite.DB, query string, args ...any) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// add appends records with these ids to the stream s.
func add(t testing.TB, feed port.Feed, ids ...string) port.Head {
	t.Helper()
	head, err := feed.Head(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	b := port.Batch{After: head.Newest, State: fmt.Append(nil, ids)}
	for _, id := range ids {
		b.Records = append(b.Records, port.FeedRecord{ID: id, At: newYear, Data: []byte("{}")})
	}
	if head, err = feed.Append(t.Context(), "s", b); err != nil {
		t.Fatal(err)
	}
	return head
}

func TestFeedSurvivesReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	feed, db, _ := setupFeed(t, path)
	add(t, feed, "a", "b")
	want := add(t, feed, "c")
	if err := feed.MoveCursor(t.Context(), "s", "bus", 0, 2); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Head(t.Context(), "s"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("read of a closed feed: got %v, want an Unavailable fault", err)
	}
	feed, _, _ = setupFeed(t, path)
	if got, err := feed.Head(t.Context(), "s"); err != nil || got.Epoch != want.Epoch || got.Newest != 3 || got.Oldest != 1 || string(got.State) != "[c]" {
		t.Errorf("got head %+v, %v, want %+v", got, err, want)
	}
	if at, err := feed.Cursor(t.Context(), "s", "bus"); at != 2 || err != nil {
		t.Errorf("got cursor %d, %v, want 2", at, err)
	}
	if records, err := feed.Read(t.Context(), "s", 0, 10); err != nil || len(records) != 3 || records[2].ID != "c" {
		t.Errorf("got records %v, %v, want three", records, err)
	}
}

// TestTrimDeletesRows also checks that positions follow a clock that goes back.
func TestTrimDeletesRows(t *testing.T) {
	t.Parallel()
	feed, db, now := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
	add(t, feed, "a", "b")
	now.Advance(-time.Minute)
	add(t, feed, "c")
	now.Advance(31 * time.Minute)
	add(t, feed, "d", "e")
	now.Advance(31 * time.Minute)
	if head, err := feed.Head(t.Context(), "s"); err != nil || head.Oldest != 4 {
		t.Errorf("got head %+v, %v, want oldest position 4", head, err)
	}
	for _, want := range []int{2, 1, 0} {
		if n, err := feed.Trim(t.Context(), "s", 2); n != want || err != nil {
			t.Errorf("got %d trimmed, %v, want %d", n, err, want)
		}
	}
	if rows := count(t, db, "SELECT sum(count) FROM feed_records"); rows != 2 {
		t.Errorf("got %d records, want 2", rows)
	}
}

// TestWaitersEndWithTheirDatabase also checks that an ended wait leaves nothing behind
// that stops the close.
func TestWaitersEndWithTheirDatabase(t *testing.T) {
	t.Parallel()
	feed, db, _ := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, ctx := range []context.Context{t.Context(), ctx} {
		go func() { ended <- feed.Wait(ctx, "s", 0) }()
	}
	cancel()
	<-ended
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v from a wait on a closed database, want an Unavailable fault", err)
	}
}

func TestBackupHasOtherEpochs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	feed, db, _ := setupFeed(t, filepath.Join(folder, "sortie.db"))
	before := add(t, feed, "a")
	if err := db.Backup(t.Context(), filepath.Join(folder, "copy.db")); err != nil {
		t.Fatal(err)
	}
	if same, err := feed.Head(t.Context(), "s"); err != nil || same.Epoch != before.Epoch {
		t.Errorf("got epoch %s of the original, %v, want %s", same.Epoch, err, before.Epoch)
	}
	restored, _, _ := setupFeed(t, filepath.Join(folder, "copy.db"))
	if after := add(t, restored, "b"); after.Newest != 2 || after.Epoch == before.Epoch {
		t.Errorf("got head %+v of the copy, want position 2 in another epoch than %s", after, before.Epoch)
	}
}

func TestFeedNeedsARetention(t *testing.T) {
	t.Parallel()
	_, db, now := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
	if _, err := sqlite.NewFeed(t.Context(), db, sqlite.FeedConfig{Clock: now}); err == nil {
		t.Error("got a feed without a retention, want an error")
	}
}

// TestExpiredStreamsAreForgotten trims streams whose records have expired: one with the prefix
// leaves nothing, another one its positions.
func TestExpiredStreamsAreForgotten(t *testing.T) {
	t.Parallel()
	_, db, now := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
	feed, err := sqlite.NewFeed(t.Context(), db, sqlite.FeedConfig{Clock: now, Retention: time.Hour, Forget: "tasks/"})
	if err != nil {
		t.Fatal(err)
	}
	appendTo := func(stream string, after int64) port.Head {
		head, err := feed.Append(t.Context(), stream, port.Batch{After: after, Records: []port.FeedRecord{{ID: fmt.Sprint(after), At: now.Now(), Data: []byte("x")}}, State: []byte("s")})
		if err != nil {
			t.Fatal(err)
		}
		return head
	}
	trim := func(stream string) port.Head {
		_, err := feed.Trim(t.Context(), stream, 10)
		head, failed := feed.Head(t.Context(), stream)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return head
	}
	appendTo("tasks/a/1", 0)
	appendTo("events/a", 0)
	now.Advance(59 * time.Minute)
	appendTo("tasks/a/2", 0)
	now.Advance(2 * time.Minute)
	for stream, newest := range map[string]int64{"tasks/a/1": 0, "tasks/a/2": 1, "events/a": 1} {
		if head := trim(stream); head.Newest != newest {
			t.Errorf("%s: got %+v, want the newest position %d", stream, head, newest)
		}
	}
	if head := appendTo("tasks/a/1", 0); head.Newest != 1 {
		t.Errorf("got %+v, want a new stream", head)
	}
	streams, _, err := feed.Streams(t.Context(), "tasks/", "", 10)
	if err != nil || len(streams) != 2 {
		t.Errorf("got the streams %v (%v), want two", streams, err)
	}
}
