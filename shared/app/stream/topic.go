package stream

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// epochInterval is how often a topic checks the epoch of its stream. topicPause is the pause
// after a failure.
const (
	epochInterval = 15 * time.Second
	topicPause    = time.Second
)

// topics wait for new records of streams, once for all readers of a stream.
type topics struct {
	feed  port.Feed
	clock clock.Clock
	log   *slog.Logger

	mu   sync.Mutex
	open map[string]*topic
}

// topic is a stream with readers.
type topic struct {
	stop    context.CancelFunc
	readers int // guarded by topics.mu

	mu   sync.Mutex
	head port.Head
	// changed is closed and replaced when head changes.
	changed chan struct{}
}

// join returns the topic of a stream whose end is head. The caller must call leave.
func (t *topics) join(stream string, head port.Head) *topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.open[stream]
	if !ok {
		ctx, stop := context.WithCancel(context.Background())
		known = &topic{stop: stop, head: head, changed: make(chan struct{})}
		t.open[stream] = known
		go t.watch(ctx, stream, known)
	}
	known.readers++
	return known
}

// leave undoes a join. The last reader ends the topic.
func (t *topics) leave(stream string, known *topic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known.readers--; known.readers == 0 {
		known.stop()
		delete(t.open, stream)
	}
}

// watch reads the head of the stream whenever the stream grows.
func (t *topics) watch(ctx context.Context, stream string, known *topic) {
	for ctx.Err() == nil {
		head, _ := known.current()
		if err := t.wait(ctx, stream, head.Newest); err != nil {
			t.failed(ctx, stream, err)
			continue
		}
		head, err := t.feed.Head(ctx, stream)
		if err != nil {
			t.failed(ctx, stream, err)
			continue
		}
		known.set(head)
	}
}

// wait returns nil once the stream has grown, or after epochInterval.
func (t *topics) wait(ctx context.Context, stream string, newest int64) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	look, stop := t.clock.NewTimer(epochInterval)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- t.feed.Wait(limited, stream, newest) }()
	select {
	case err := <-ended:
		return err
	case <-look:
		cancel()
		<-ended //nolint:errcheck // it is the error of limited
		return nil
	}
}

func (t *topics) failed(ctx context.Context, stream string, err error) {
	if ctx.Err() != nil {
		return
	}
	t.log.WarnContext(ctx, "cannot wait for events; their readers wait longer", "stream", stream, "error", err.Error())
	_ = clock.Sleep(ctx, t.clock, topicPause) // the caller checks ctx
}

// current returns the head of the stream, and a channel that is closed when the head changes.
func (t *topic) current() (port.Head, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head, t.changed
}

func (t *topic) set(head port.Head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if head.Epoch == t.head.Epoch && head.Newest == t.head.Newest {
		return
	}
	t.head = head
	close(t.changed)
	t.changed = make(chan struct{})
}
