package sqlite

import (
	"context"
	"sync"
)

// commitNotifier wakes the readers that wait for a commit. All writers of the file are in this
// process.
type commitNotifier struct {
	mu   sync.Mutex
	next map[string]chan struct{}
}

// subscribe returns a channel that is closed at the next notification of the topic.
func (n *commitNotifier) subscribe(topic string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next[topic] == nil {
		n.next[topic] = make(chan struct{})
	}
	return n.next[topic]
}

// notify closes the channel of the topic. It is called after a commit.
func (n *commitNotifier) notify(topic string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if next := n.next[topic]; next != nil {
		close(next)
		delete(n.next, topic)
	}
}

// await calls read until it finds something: once, and again after each notification of the
// topic. If ctx ends, it returns the error of ctx.
func (d *DB) await(ctx context.Context, topic string, read func(*Tx) (found bool, err error)) error {
	for {
		next, found := d.news.subscribe(topic), false
		err := d.Read(ctx, func(tx *Tx) (err error) {
			found, err = read(tx)
			return err
		})
		if err != nil || found {
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.closing:
			return errClosed()
		}
	}
}
