package sqlite

import (
	"context"
	"sync"

	"github.com/sortie-dev/sortie/shared/port"
)

// tails caches the last batches of the streams that have readers. A reader that waits for a
// batch gets it without a read of the file. All writers of the file are in this process. It is
// safe for concurrent use.
type tails struct {
	mu    sync.Mutex
	known map[string]*tail
}

// tail is the end of a stream.
type tail struct {
	// newest is the newest position; -1 until it is known.
	newest int64
	// records is the last batch, which begins behind the position after.
	after      int64
	records    []port.FeedRecord
	appendedAt int64
	// waiting counts the readers that wait for next. The next append closes it.
	waiting int
	next    chan struct{}
}

// mostTails is the largest number of tails of streams without a waiting reader. largestBatch is
// the size in bytes up to which a batch is cached.
const (
	mostTails    = 1024
	largestBatch = 8 << 10
)

// appended stores a batch and wakes its waiting readers. It is called after the commit.
func (t *tails) appended(stream string, b port.Batch, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known[stream]
	if known == nil {
		return // no reader has waited for it
	}
	// A batch may be passed after a later one.
	if newest := b.After + int64(len(b.Records)); newest > known.newest {
		known.newest, known.after, known.appendedAt = newest, b.After, at
		known.records = nil
		if size := sizeOf(b.Records); size <= largestBatch {
			known.records = make([]port.FeedRecord, len(b.Records))
			for i, r := range b.Records {
				known.records[i] = port.FeedRecord{Position: b.After + 1 + int64(i), ID: r.ID, At: r.At.UTC(), Data: append([]byte{}, r.Data...)}
			}
		}
	}
	if known.next != nil {
		close(known.next)
		known.next = nil
	}
}

func sizeOf(records []port.FeedRecord) (size int) {
	for _, r := range records {
		size += r.Size()
	}
	return size
}

// forget removes the tail of a stream whose positions start again.
func (t *tails) forget(stream string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[stream]; known != nil && known.next != nil {
		close(known.next)
	}
	delete(t.known, stream)
}

// read returns the records behind a position. It returns false unless all of them are in the
// last batch and were appended after expired.
func (t *tails) read(stream string, after, expired int64, limit int) ([]port.FeedRecord, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known[stream]
	if known == nil || after < known.after || after >= known.after+int64(len(known.records)) || known.appendedAt <= expired {
		return nil, false
	}
	found := known.records[after-known.after:]
	return found[:min(len(found), limit):min(len(found), limit)], true
}

// addWaiter counts a reader that waits for a position above after, until removeWaiter is called
// with the tail. more reports that the stream has one. The next append closes next. If look is
// true, the caller must read the newest position and call setNewest before it waits.
func (t *tails) addWaiter(stream string, after, expired int64) (known *tail, more, look bool, next <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known = t.known[stream]; known == nil {
		t.makeRoom()
		known = &tail{newest: -1}
		t.known[stream] = known
	}
	known.waiting++
	if known.newest > after && known.appendedAt > expired {
		return known, true, false, nil
	}
	if known.next == nil {
		known.next = make(chan struct{})
	}
	return known, false, known.newest != after, known.next
}

// setNewest stores the newest position that was read.
func (t *tails) setNewest(known *tail, newest int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known.newest = max(known.newest, newest)
}

func (t *tails) removeWaiter(known *tail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known.waiting--
}

// makeRoom removes tails without a waiting reader. t.mu is locked.
func (t *tails) makeRoom() {
	if len(t.known) < mostTails {
		return
	}
	for stream, known := range t.known {
		if known.waiting == 0 {
			delete(t.known, stream)
		}
	}
}

// Wait implements port.Feed.
func (f *Feed) Wait(ctx context.Context, stream string, after int64) error {
	if err := port.CheckFeedName(stream); err != nil {
		return wrap(err, "wait for", stream)
	}
	for {
		more, err := f.await(ctx, stream, after)
		if more || err != nil {
			return wrap(err, "wait for", stream)
		}
	}
}

// await waits for the next append. more reports that the newest position is above after.
func (f *Feed) await(ctx context.Context, stream string, after int64) (more bool, err error) {
	t := &f.db.tails
	known, more, look, next := t.addWaiter(stream, after, f.expired())
	defer t.removeWaiter(known)
	if more {
		return true, nil
	}
	if look {
		// An append after this read closes next.
		newest, err := f.newest(ctx, stream)
		if newest > after || err != nil {
			return newest > after, err
		}
		t.setNewest(known, newest)
	}
	select {
	case <-next:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-f.db.closing:
		return false, errClosed()
	}
}

// newest reads the newest position of a stream.
func (f *Feed) newest(ctx context.Context, stream string) (newest int64, err error) {
	err = f.db.Read(ctx, func(tx *Tx) error {
		s, err := streamOf(tx, stream)
		newest = s.newest
		return err
	})
	return newest, err
}
