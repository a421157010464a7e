package roles

import (
	"strconv"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// queue is an SQS queue that delivers each message once. It drops a message whose deduplication
// id it already knows.
type queue struct {
	mu      sync.Mutex
	count   int
	waiting []queued
	known   map[string]bool
}

type queued struct {
	ID   string `json:"messageId"`
	Body string `json:"body"`
	due  time.Time
}

func newQueue() *queue { return &queue{known: map[string]bool{}} }

// send adds a message and returns its id.
func (q *queue) send(m message) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count++
	id := strconv.Itoa(q.count)
	if m.MessageDeduplicationID != "" && q.known[m.MessageDeduplicationID] {
		return id
	}
	q.known[m.MessageDeduplicationID] = true
	q.waiting = append(q.waiting, queued{id, m.MessageBody, clock.System{}.Now().Add(time.Duration(m.DelaySeconds) * time.Second)})
	return id
}

// again returns messages to the queue.
func (q *queue) again(messages ...queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, messages...)
}

// take removes and returns up to n due messages.
func (q *queue) take(n int) (due []queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := clock.System{}.Now()
	var later []queued
	for _, m := range q.waiting {
		if len(due) < n && !m.due.After(now) {
			due = append(due, m)
		} else {
			later = append(later, m)
		}
	}
	q.waiting = later
	return due
}
