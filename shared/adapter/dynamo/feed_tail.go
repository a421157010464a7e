package dynamo

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/port"
)

// A Feed caches at most maxTails streams, and maxIDs record ids of a stream. Above that it
// drops all of them and reads them again.
const (
	maxTails = 1000
	maxIDs   = 100_000
)

// tail is a Feed's cache of a stream. All of it can be read again. It is not used for another
// epoch.
type tail struct {
	mu    sync.Mutex
	head  head
	known bool
	// first is the oldest batch of the stream with this epoch.
	first span
	epoch string

	window window
}

func (f *Feed) tail(stream string) *tail {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tails[stream]
	if t == nil {
		if len(f.tails) >= maxTails {
			clear(f.tails)
		}
		t = &tail{}
		f.tails[stream] = t
	}
	return t
}

// setHead stores the head that was read.
func (t *tail) setHead(h head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head, t.known = h, true
}

// last returns the head that was read or written last.
func (t *tail) last() (h head, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head, t.known
}

func (t *tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = false
}

// setOldest stores the oldest batch.
func (t *tail) setOldest(epoch string, first span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch, t.first = epoch, first
}

// oldest returns the batch that was the oldest at an earlier call, or the zero value if it
// is unknown.
func (t *tail) oldest(epoch string) span {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != epoch {
		return span{}
	}
	return t.first
}

// appended stores the result of an append of this Feed.
func (t *tail) appended(before, after head, records []port.FeedRecord) {
	t.setHead(after)
	if first := t.oldest(after.epoch); len(records) > 0 && (before.newest == 0 || first.first == before.newest+1) {
		t.setOldest(after.epoch, span{before.newest + 1, after.newest, after.appended})
	}
	w := &t.window
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoch == after.epoch && w.to == before.newest {
		for i, r := range records {
			w.ids[r.ID] = appearance{before.newest + 1 + int64(i), after.appended}
		}
		w.to = after.newest
	}
}

// window has the ids of the records at the positions from+1 to to. It contains all records up
// to to that were appended at the time reach or later.
type window struct {
	mu       sync.Mutex
	epoch    string
	from, to int64
	reach    int64
	ids      map[string]appearance
}

// appearance says where and when a record was appended.
type appearance struct{ position, appended int64 }

// skew is how much earlier than the time of its event a record may be appended, because clocks
// differ.
const skew = time.Minute

// Positions implements port.Feed. It reads the head and the batches that other processes have
// appended since the last call. Once it also reads the batches since a minute before the oldest
// of the records.
func (f *Feed) Positions(ctx context.Context, stream string, records []port.FeedRecord) (map[string]int64, error) {
	found, err := f.positions(ctx, stream, records)
	return found, wrap(err, "read positions of", stream)
}

func (f *Feed) positions(ctx context.Context, stream string, records []port.FeedRecord) (map[string]int64, error) {
	found := map[string]int64{}
	h, err := f.lookUp(ctx, stream, true)
	if err != nil {
		return nil, err
	}
	t := f.tail(stream)
	t.setHead(h)
	if h.newest == 0 || len(records) == 0 {
		return found, nil
	}
	wanted, expired, since := make(map[string]bool, len(records)), f.expired(), int64(math.MaxInt64)
	for _, r := range records {
		wanted[r.ID] = true
		since = min(since, unixNanos(r.At.Add(-skew)))
	}
	since = max(since, expired)
	w := &t.window
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoch != h.epoch || w.to > h.newest || len(w.ids) > maxIDs {
		w.epoch, w.from, w.to, w.reach, w.ids = h.epoch, h.newest, h.newest, math.MaxInt64, map[string]appearance{}
	}
	older := map[string]appearance{}
	if err := f.forward(ctx, stream, w, h.newest); err != nil {
		return nil, err
	}
	if err := f.backward(ctx, stream, w, since, func(id string, p appearance) {
		if _, known := older[id]; wanted[id] && !known {
			older[id] = p
		}
	}); err != nil {
		return nil, err
	}
	for id := range wanted {
		p, known := w.ids[id]
		if !known {
			p, known = older[id]
		}
		if known && p.appended > expired {
			found[id] = p.position
		}
	}
	return found, nil
}

// forward extends the window to a position.
func (f *Feed) forward(ctx context.Context, stream string, w *window, to int64) (err error) {
	if w.to >= to {
		return nil
	}
	var damaged error
	err = f.grow(ctx, f.batches(stream, w.to), func(is item) bool {
		var batch []port.FeedRecord
		if batch, damaged = f.recordsIn(is); damaged != nil {
			return false
		}
		for _, r := range batch {
			w.ids[r.ID] = appearance{r.Position, numberOf(is[attrAppended])}
			w.to = r.Position
		}
		return w.to < to
	})
	if err == nil {
		err = damaged
	}
	if err == nil {
		w.to = max(w.to, to) // the newest batches have expired
	}
	return err
}

// backward extends the window back to a time, and calls read for each record that it reads. A
// window with more than maxIDs ids is not extended.
func (f *Feed) backward(ctx context.Context, stream string, w *window, since int64, read func(string, appearance)) error {
	if w.reach <= since {
		return nil
	}
	query := f.store.queryRange(pkFeed(stream), sortBatch, positionSort(sortBatch, w.from))
	query.ScanIndexForward = aws.Bool(false)
	reach := int64(math.MinInt64) // at the start of the stream
	var damaged error
	err := f.grow(ctx, query, func(is item) bool {
		appended := numberOf(is[attrAppended])
		if appended < since {
			reach = since
			return false
		}
		var batch []port.FeedRecord
		if batch, damaged = f.recordsIn(is); damaged != nil {
			return false
		}
		full := len(w.ids) > maxIDs
		for _, r := range batch {
			p := appearance{r.Position, appended}
			read(r.ID, p)
			if _, known := w.ids[r.ID]; !known && !full {
				w.ids[r.ID] = p
			}
		}
		if !full {
			w.from, w.reach = batch[0].Position-1, appended+1 // an older one may have the same time
		}
		return true
	})
	if err == nil {
		err = damaged
	}
	if err == nil && len(w.ids) <= maxIDs {
		w.reach = reach
	}
	return err
}
