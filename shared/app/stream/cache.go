package stream

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"sync"

	"github.com/sortie-dev/sortie/shared/port"
)

// chunkLength is the number of positions in a chunk of the cache.
const chunkLength = 256

// cacheBytes is the maximum size of the events in the cache.
const cacheBytes = 32 << 20

// cache stores the most recently read events, in chunks of consecutive positions. It is safe
// for concurrent use. Readers that need the same chunk share one read of the feed.
type cache struct {
	feed port.Feed
	log  *slog.Logger
	max  int

	mu     sync.Mutex
	chunks map[chunkKey]*list.Element // values are *chunk
	recent list.List                  // the most recently used chunk is first
	bytes  int
}

type chunkKey struct {
	stream, epoch string
	number        int64
}

// chunk contains the events from position number*chunkLength+1.
type chunk struct {
	key   chunkKey
	bytes int // included in cache.bytes, guarded by cache.mu

	mu     sync.Mutex
	events []*Event
	read   int64 // the last position that was read
}

func newCache(feed port.Feed, log *slog.Logger) *cache {
	return &cache{feed: feed, log: log, max: cacheBytes, chunks: map[chunkKey]*list.Element{}}
}

// after returns events after a cursor and the last position that it has read. It returns at
// least one event if there is any up to newest. Events that retention has removed are missing.
// The caller must not change the result.
func (c *cache) after(ctx context.Context, stream string, at Cursor, newest int64) (found []*Event, last int64, err error) {
	for last = at.Position; len(found) == 0 && last < newest; {
		k := c.chunk(chunkKey{stream, at.Epoch, last / chunkLength})
		if found, last, err = c.fill(ctx, k, last, newest); err != nil {
			return nil, at.Position, err
		}
	}
	return found, last, nil
}

// chunk returns the chunk of a key, and creates it if necessary.
func (c *cache) chunk(key chunkKey) *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.chunks[key]; ok {
		c.recent.MoveToFront(known)
		return known.Value.(*chunk) //nolint:forcetypeassert // the list has nothing else
	}
	k := &chunk{key: key, read: key.number * chunkLength}
	c.chunks[key] = c.recent.PushFront(k)
	return k
}

// fill returns the events of a chunk after a position, and the last position that it has read.
// If the chunk does not have them, it reads events up to newest from the feed.
func (c *cache) fill(ctx context.Context, k *chunk, after, newest int64) ([]*Event, int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if end := (k.key.number + 1) * chunkLength; k.read <= after && after < min(newest, end) {
		records, err := c.feed.Read(ctx, k.key.stream, k.read, int(end-k.read))
		if err != nil {
			return nil, after, fmt.Errorf("cannot read the events: %w", err)
		}
		c.add(ctx, k, records, min(newest, end))
	}
	first := sort.Search(len(k.events), func(i int) bool { return k.events[i].Position > after })
	return k.events[first:len(k.events):len(k.events)], max(k.read, after), nil
}

// add adds records to a chunk. If there are no records for the next positions, retention has
// removed them: all of them up to until, if there is no record at all.
func (c *cache) add(ctx context.Context, k *chunk, records []port.FeedRecord, until int64) {
	grown, end := 0, (k.key.number+1)*chunkLength
	if behind := slices.IndexFunc(records, func(r port.FeedRecord) bool { return r.Position > end }); behind >= 0 {
		records = records[:behind]
	}
	decoded, failed := decode(records)
	for i, e := range decoded {
		if failed[i] != nil {
			c.log.ErrorContext(ctx, "cannot read a record of the feed; only exports have it",
				"stream", k.key.stream, "position", e.Position, "error", failed[i].Error())
		}
		k.read = e.Position
		grown += e.size()
	}
	k.events = append(k.events, decoded...)
	if grown == 0 {
		k.read = until
	}
	c.grow(k, grown)
}

// decodePart is the number of records that one goroutine decodes.
const decodePart = 64

// decode returns the events of records, with one error (or nil) for each. It uses several
// goroutines, because decoding takes most of the time of a resumed stream.
func decode(records []port.FeedRecord) (decoded []*Event, failed []error) {
	decoded, failed = make([]*Event, len(records)), make([]error, len(records))
	var parts sync.WaitGroup
	for from := 0; from < len(records); from += decodePart {
		part := func() {
			for i := from; i < min(from+decodePart, len(records)); i++ {
				decoded[i], failed[i] = newEvent(records[i])
			}
		}
		if from+decodePart < len(records) {
			parts.Go(part)
		} else {
			part()
		}
	}
	parts.Wait()
	return decoded, failed
}

// grow counts the bytes of a chunk, and drops the least recently used chunks. Readers that use
// them keep them.
func (c *cache) grow(k *chunk, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.chunks[k.key]; !ok {
		return // dropped meanwhile
	}
	k.bytes += bytes
	c.bytes += bytes
	for c.bytes > c.max && c.recent.Len() > 1 {
		oldest := c.recent.Back()
		dropped := c.recent.Remove(oldest).(*chunk) //nolint:forcetypeassert // the list has nothing else
		delete(c.chunks, dropped.key)
		c.bytes -= dropped.bytes
	}
}
