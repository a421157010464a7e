package simulation

import (
	"container/heap"
	"time"
)

// timeline is the clock and what is going to happen. Waiting on it lets the
// world go on.
type timeline struct {
	now     time.Time
	count   int
	pending happenings
}

type happening struct {
	at    time.Time
	order int
	do    func()
}

// Now implements clock.Clock.
func (t *timeline) Now() time.Time { return t.now }

// NewTimer implements clock.Clock. Whoever makes a timer waits for it: the time
// passes at once.
func (t *timeline) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t.until(t.now.Add(d), func() bool { return false })
	fired := make(chan time.Time, 1)
	fired <- t.now
	return fired, func() {}
}

// after makes something happen later.
func (t *timeline) after(d time.Duration, do func()) {
	t.count++
	heap.Push(&t.pending, happening{t.now.Add(max(d, 0)), t.count, do})
}

// next is when the next thing happens.
func (t *timeline) next() (time.Time, bool) {
	if len(t.pending) == 0 {
		return time.Time{}, false
	}
	return t.pending[0].at, true
}

// until lets things happen until the limit, or until enough says so.
func (t *timeline) until(limit time.Time, enough func() bool) {
	for !enough() {
		at, ok := t.next()
		if !ok || at.After(limit) {
			if limit.After(t.now) {
				t.now = limit
			}
			return
		}
		next, ok := heap.Pop(&t.pending).(happening)
		if !ok {
			return
		}
		if next.at.After(t.now) {
			t.now = next.at
		}
		next.do()
	}
}

// happenings is a heap by time, then by order of their making.
type happenings []happening

func (h happenings) Len() int { return len(h) }

func (h happenings) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].order < h[j].order
	}
	return h[i].at.Before(h[j].at)
}

func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is heap.Interface.
func (h *happenings) Push(x any) {
	if one, ok := x.(happening); ok {
		*h = append(*h, one)
	}
}

// Pop is heap.Interface.
func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
