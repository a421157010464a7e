package simulation

import (
	"container/heap"
	"time"
)

// timeline is a virtual clock with a queue of events. Waiting on it runs the
// events that are due meanwhile.
type timeline struct {
	now     time.Time
	count   int
	pending eventQueue
}

type event struct {
	at    time.Time
	order int
	do    func()
}

// Now implements clock.Clock.
func (t *timeline) Now() time.Time { return t.now }

// NewTimer implements clock.Clock. It returns a timer that has fired: the time
// passes during the call.
func (t *timeline) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t.runUntil(t.now.Add(d), func() bool { return false })
	fired := make(chan time.Time, 1)
	fired <- t.now
	return fired, func() {}
}

// after schedules do.
func (t *timeline) after(d time.Duration, do func()) {
	t.count++
	heap.Push(&t.pending, event{t.now.Add(max(d, 0)), t.count, do})
}

// next returns the time of the next event.
func (t *timeline) next() (time.Time, bool) {
	if len(t.pending) == 0 {
		return time.Time{}, false
	}
	return t.pending[0].at, true
}

// runUntil runs events until the limit, or until enough returns true.
func (t *timeline) runUntil(limit time.Time, enough func() bool) {
	for !enough() {
		at, ok := t.next()
		if !ok || at.After(limit) {
			if limit.After(t.now) {
				t.now = limit
			}
			return
		}
		next, ok := heap.Pop(&t.pending).(event)
		if !ok {
			return
		}
		if next.at.After(t.now) {
			t.now = next.at
		}
		next.do()
	}
}

// eventQueue is a heap by time, then by order of scheduling.
type eventQueue []event

func (h eventQueue) Len() int { return len(h) }

func (h eventQueue) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].order < h[j].order
	}
	return h[i].at.Before(h[j].at)
}

func (h eventQueue) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *eventQueue) Push(x any) {
	if one, ok := x.(event); ok {
		*h = append(*h, one)
	}
}

// Pop implements heap.Interface.
func (h *eventQueue) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
