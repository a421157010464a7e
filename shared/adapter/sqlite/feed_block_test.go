package sqlite_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
)

// eventBatch returns n events like those of runs, without DSSE envelopes.
func eventBatch(after int64, n int) (b port.Batch) {
	b.After = after
	for i := range n {
		position := after + 1 + int64(i)
		data := strings.ReplaceAll(event, "00VHNCZB00J3T3FTBHY2X9R2D2", fmt.Sprintf("%026d", position))
		b.Records = append(b.Records, port.FeedRecord{
			ID: fmt.Sprintf("%026d", position), At: newYear.Add(time.Duration(position) * time.Millisecond), Data: []byte(data),
		})
	}
	return b
}

// TestBatchIsOneRow appends batches of several sizes. Each is few rows, and each record is read
// alone, with others and by its id.
func TestBatchIsOneRow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	_, db, now := setupStore(t, path)
	feed := newFeed(t, db, now)
	const stream = "events/acme"
	var all []port.FeedRecord
	add := func(b port.Batch, rows int64) {
		t.Helper()
		before := count(t, db, "SELECT count(*) FROM feed_records")
		head, err := feed.Append(t.Context(), stream, b)
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(count(t, db, "SELECT count(*) FROM feed_records") - before); got != rows {
			t.Errorf("%d records: got %d rows, want %d", len(b.Records), got, rows)
		}
		for i, r := range b.Records {
			r.Position = b.After + 1 + int64(i)
			all = append(all, r)
		}
		if head.Oldest != 1 || head.Newest != int64(len(all)) {
			t.Errorf("got head %+v, want positions 1 to %d", head, len(all))
		}
	}
	add(eventBatch(0, 8), 1)
	add(eventBatch(8, 1), 1)
	add(eventBatch(9, 250), 8)
	add(eventBatch(259, 2), 1)
	large := eventBatch(261, 3)
	large.Records[1].Data = bytes.Repeat([]byte("large "), 15_000)
	add(large, 3)
	mixed := eventBatch(264, 3)
	mixed.Records[0].Data, mixed.Records[2].Data = []byte{0, 0xff}, []byte{}
	add(mixed, 1)
	signed := eventBatch(267, 5)
	for _, i := range []int{2, 3} {
		signed.Records[i].Data = []byte(envelope(string(signed.Records[i].Data)))
	}
	add(signed, 4)
	if rows := count(t, db, "SELECT count(*) FROM feed_records WHERE packed = 1"); rows != 2 {
		t.Errorf("got %d compressed DSSE envelopes, want 2", rows)
	}
	for _, limit := range []int{1, 7, 100, 1000} {
		var got []port.FeedRecord
		for after := int64(0); after < int64(len(all)); {
			page, err := feed.Read(t.Context(), stream, after, limit)
			if err != nil || len(page) == 0 || len(page) > limit {
				t.Fatalf("behind %d: got %d records, %v, want 1 to %d", after, len(page), err, limit)
			}
			got, after = append(got, page...), page[len(page)-1].Position
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("pages of %d: want -, got +\n%s", limit, diff)
		}
	}
	found, err := feed.Positions(t.Context(), stream, all)
	for _, r := range all {
		if err != nil || found[r.ID] != r.Position {
			t.Errorf("got position %d, %v, want %d", found[r.ID], err, r.Position)
		}
	}
	if about, err := sqlite.Inspect(t.Context(), path, all[100].ID); err != nil || !strings.Contains(fmt.Sprintf("%s", about["record"]), `"position":101`) {
		t.Errorf("got %s, %v, want the event at 101", about["record"], err)
	}
}

// TestPartOfABatchIsDeleted deletes the records of batches one by one.
func TestPartOfABatchIsDeleted(t *testing.T) {
	t.Parallel()
	feed, _, now := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
	const stream = "events/acme"
	for after := range int64(3) {
		if _, err := feed.Append(t.Context(), stream, eventBatch(after*5, 5)); err != nil {
			t.Fatal(err)
		}
		now.Advance(20 * time.Minute)
	}
	left := func() (positions []int64) {
		records, err := feed.Read(t.Context(), stream, 0, 100)
		head, failed := feed.Head(t.Context(), stream)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		for _, r := range records {
			if positions = append(positions, r.Position); r.ID != fmt.Sprintf("%026d", r.Position) {
				t.Errorf("got %s at %d", r.ID, r.Position)
			}
		}
		if len(positions) > 0 && head.Oldest != positions[0] {
			t.Errorf("got oldest %d, want %d", head.Oldest, positions[0])
		}
		return positions
	}
	if got := left(); len(got) != 10 || got[0] != 6 { // the first batch has expired
		t.Errorf("got positions %v, want 6 to 15", got)
	}
	for _, want := range []int{3, 2, 0} {
		if n, err := feed.Trim(t.Context(), stream, 3); n != want || err != nil {
			t.Errorf("got %d trimmed, %v, want %d", n, err, want)
		}
	}
	for _, step := range []struct{ limit, deleted, oldest int64 }{{3, 3, 9}, {1, 1, 10}, {4, 1, 11}, {4, 0, 11}} {
		n, err := feed.Shed(t.Context(), stream, newYear.Add(30*time.Minute), int(step.limit))
		if got := left(); err != nil || int64(n) != step.deleted || got[0] != step.oldest || got[len(got)-1] != 15 {
			t.Errorf("got %d shed, %v, and positions %v, want %d and %d to 15", n, err, got, step.deleted, step.oldest)
		}
	}
}

// TestStoredBatchIsSmall bounds the size of a batch of events in a row.
func TestStoredBatchIsSmall(t *testing.T) {
	t.Parallel()
	feed, db, _ := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
	if _, err := feed.Append(t.Context(), "events/acme", eventBatch(0, 8)); err != nil {
		t.Fatal(err)
	}
	if size, most := count(t, db, "SELECT length(data) FROM feed_records"), len(event)*8/10; size > most {
		t.Errorf("got %d bytes for 8 events of %d, want at most %d", size, len(event), most)
	}
}

// TestDamagedBatchIsAnError reads rows that were changed.
func TestDamagedBatchIsAnError(t *testing.T) {
	t.Parallel()
	feed, db, _ := setupFeed(t, filepath.Join(t.TempDir(), "sortie.db"))
	b := eventBatch(0, 3)
	if _, err := feed.Append(t.Context(), "events/acme", b); err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{
		"UPDATE feed_records SET data = substr(data, 1, length(data) / 2)", "UPDATE feed_records SET data = x'ff'", "UPDATE feed_records SET packed = 3",
		"UPDATE feed_records SET packed = 9", "UPDATE feed_records SET packed = 3, data = x'0161'", "UPDATE feed_records SET packed = 3, data = x''",
	} {
		change(t, db, damage)
		if records, err := feed.Read(t.Context(), "events/acme", 0, 10); err == nil {
			t.Errorf("%s: got %d records, want an error", damage, len(records))
		}
		if found, err := feed.Positions(t.Context(), "events/acme", slices.Clone(b.Records)); err == nil {
			t.Errorf("%s: got %v, want an error", damage, found)
		}
	}
}

// BenchmarkReadOfABatch reads single records and pages of a stream with large batches.
func BenchmarkReadOfABatch(b *testing.B) {
	feed, _, _ := setupFeed(b, filepath.Join(b.TempDir(), "sortie.db"))
	for after := range int64(10) {
		if _, err := feed.Append(b.Context(), "events/acme", eventBatch(after*100, 100)); err != nil {
			b.Fatal(err)
		}
	}
	for _, limit := range []int{1, 100} {
		b.Run(fmt.Sprint("limit ", limit), func(b *testing.B) {
			for i := int64(0); b.Loop(); i++ {
				if _, err := feed.Read(b.Context(), "events/acme", i*37%900, limit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("append 8", func(b *testing.B) {
		for i := int64(1000); b.Loop(); i += 8 {
			if _, err := feed.Append(b.Context(), "events/acme", eventBatch(i, 8)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
