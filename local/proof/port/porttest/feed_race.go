package porttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// FeedWriters has many writers append to one stream concurrently, each record from two of them,
// while a reader reads the stream. Each record must be stored once. The calls may fail in both
// ways. As the port requires, a writer reads again after a fault.
func FeedWriters(t *testing.T, one, other port.Feed, now func() time.Time) {
	t.Helper()
	const writers, each, most = 12, 40, 7
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	record := func(n int) port.FeedRecord {
		n %= writers * each / 2
		return port.FeedRecord{ID: fmt.Sprint("id-", n), At: now().UTC(), Data: fmt.Appendf(nil, "%d", n)}
	}
	var writing, reading sync.WaitGroup
	for w := range writers {
		feed := one
		if w%3 == 0 {
			feed = other
		}
		writing.Go(func() {
			for from := 0; from < each; from += most {
				var records []port.FeedRecord
				for n := from; n < min(from+most, each); n++ {
					records = append(records, record(w*each+n))
				}
				if err := storeOnce(ctx, feed, records); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	reading.Go(func() {
		defer func() {
			if t.Failed() {
				cancel() // the writers may not end
			}
		}()
		if err := readEachOnce(ctx, other, writers*each/2); err != nil {
			t.Error(err)
		}
	})
	writing.Wait()
	head, err := one.Head(ctx, "s")
	for fault.Is(err, fault.Unavailable) {
		head, err = one.Head(ctx, "s")
	}
	if err != nil || head.Newest != int64(writers*each/2) {
		t.Errorf("got newest position %d, %v, want %d", head.Newest, err, writers*each/2)
	}
	if t.Failed() {
		cancel() // the reader would wait for more records
	}
	reading.Wait()
}

// readEachOnce reads the stream until it has got the count of records, each once.
func readEachOnce(ctx context.Context, feed port.Feed, count int) error {
	read := map[string]int64{}
	for after := int64(0); len(read) < count; {
		_ = feed.Wait(ctx, "s", after) // it may return an error
		page, err := feed.Read(ctx, "s", after, 10)
		if ctx.Err() != nil || err != nil && !fault.Is(err, fault.Unavailable) {
			return fmt.Errorf("got %d of %d records, %w", len(read), count, cmp.Or(err, ctx.Err()))
		}
		for _, r := range page {
			if r.Position != after+1 || read[r.ID] != 0 || "id-"+string(r.Data) != r.ID {
				return fmt.Errorf("got record %s with data %s at position %d behind %d, and at %d before; want each once", r.ID, r.Data, r.Position, after, read[r.ID])
			}
			read[r.ID], after = r.Position, r.Position
		}
	}
	return nil
}

// storeOnce appends the records that the stream does not have yet.
func storeOnce(ctx context.Context, feed port.Feed, records []port.FeedRecord) error {
	appended := map[string]bool{}
	for ctx.Err() == nil {
		head, err := feed.Head(ctx, "s")
		var known map[string]int64
		if err == nil {
			known, err = feed.Positions(ctx, "s", records)
		}
		if err == nil {
			b := port.Batch{After: head.Newest, State: fmt.Append(nil, head.Newest)}
			for _, r := range records {
				if known[r.ID] == 0 {
					b.Records = append(b.Records, r)
				}
				if known[r.ID] == 0 && appended[r.ID] {
					return fmt.Errorf("got no position of record %s, which was appended", r.ID)
				}
			}
			if len(b.Records) == 0 {
				return nil
			}
			if _, err = feed.Append(ctx, "s", b); err == nil {
				for _, r := range b.Records {
					appended[r.ID] = true
				}
			}
		}
		if err != nil && !errors.Is(err, port.ErrConflict) && !fault.Is(err, fault.Unavailable) {
			return err
		}
	}
	return ctx.Err()
}
