package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// follow starts a goroutine that waits for each batch of the stream s and reads it, until it
// has count records. It returns their ids in order.
func follow(t *testing.T, feed port.Feed, count int) <-chan []string {
	t.Helper()
	read := make(chan []string, 1)
	go func() {
		var ids []string
		for len(ids) < count {
			after := int64(len(ids))
			if err := feed.Wait(t.Context(), "s", after); err != nil {
				t.Error(err)
				break
			}
			found, err := feed.Read(t.Context(), "s", after, 100)
			if err != nil || len(found) == 0 || found[0].Position != after+1 {
				t.Errorf("got %v, %v behind %d, want its records", found, err, after)
				break
			}
			for _, r := range found {
				ids = append(ids, r.ID)
			}
		}
		read <- ids
	}()
	return read
}

// TestFollowersGetEachBatchOnce has readers that wait and read while another goroutine appends.
// Each has a feed of its own in the same file.
func TestFollowersGetEachBatchOnce(t *testing.T) {
	t.Parallel()
	const batches, readers = 200, 4
	feed, db, now := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
	var reading []<-chan []string
	for range readers {
		reading = append(reading, follow(t, newFeed(t, db, now), 2*batches))
	}
	var want []string
	head := port.Head{}
	for i := range batches {
		b := port.Batch{After: head.Newest, Relaxed: i%3 > 0}
		for _, name := range []string{"a", "b"} {
			id := fmt.Sprintf("%s%d", name, i)
			b.Records, want = append(b.Records, port.FeedRecord{ID: id, At: newYear, Data: []byte("{}")}), append(want, id)
		}
		var err error
		if head, err = feed.Append(t.Context(), "s", b); err != nil {
			t.Fatal(err)
		}
	}
	for i, each := range reading {
		if got := fmt.Sprint(<-each); got != fmt.Sprint(want) {
			t.Errorf("reader %d: got %s, want %s", i, got, fmt.Sprint(want))
		}
	}
}

// waits calls Wait and returns its result.
func waits(ctx context.Context, feed port.Feed, after int64) <-chan error {
	done := make(chan error, 1)
	go func() { done <- feed.Wait(ctx, "s", after) }()
	return done
}

// TestFollowedStreamExpires checks that readers get no expired record from memory. A stream
// whose positions start again is followed from its start.
func TestFollowedStreamExpires(t *testing.T) {
	t.Parallel()
	feed, db, now := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
	first := waits(t.Context(), feed, 0)
	add(t, feed, "a", "b")
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	second := waits(t.Context(), feed, 2)
	add(t, feed, "c")
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	now.Advance(2 * time.Hour)
	if found, err := feed.Read(t.Context(), "s", 2, 10); err != nil || len(found) > 0 {
		t.Errorf("got %v, %v after the retention, want nothing", found, err)
	}
	forgetting := newForgetful(t, db, now)
	if _, err := forgetting.Trim(t.Context(), "s", 10); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if err := <-waits(ctx, feed, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v for a stream that was forgotten, want a wait", err)
	}
	third := waits(t.Context(), feed, 0)
	add(t, feed, "d")
	if err := <-third; err != nil {
		t.Fatal(err)
	}
	if found, err := feed.Read(t.Context(), "s", 0, 10); err != nil || len(found) != 1 || found[0].ID != "d" || found[0].Position != 1 {
		t.Errorf("got %v, %v of the stream that began again, want d at 1", found, err)
	}
}
