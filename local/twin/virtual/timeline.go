package virtual

import (
	"container/heap"
	"runtime"
	"time"
)

// Call is what a task does for the program that it plays, such as a call of one of its processes.
// The zero value is no call.
type Call interface {
	comparable
	// Resumed is called when the task of the call runs again after it has waited. It may panic
	// with the value that ends a killed task.
	Resumed()
}

// Timeline is a virtual clock with a queue of events. Every event runs as a task, a coroutine
// that may wait. While it waits, other events run. Only one task runs at a time, so the order
// of all steps is deterministic.
type Timeline[C Call] struct {
	Now time.Time
	// Busy counts the pending events of tasks that are not in the background.
	Busy int
	// Current is the task that runs now; nil outside of tasks.
	Current *Task[C]

	killed  any
	count   int
	pending eventQueue
	parked  map[*Task[C]]bool
	// idle are the goroutines that wait for a task. They are reused because their stacks have
	// already grown to the depth of the calls.
	idle []chan func()
}

// New returns a timeline that starts at a time. A task that panics with killed has ended without
// a failure; killed is comparable.
func New[C Call](start time.Time, killed any) *Timeline[C] {
	return &Timeline[C]{Now: start, killed: killed, parked: map[*Task[C]]bool{}}
}

// Task is a coroutine: a goroutine that runs only while the timeline waits for it.
type Task[C Call] struct {
	// Call is the current call, or the zero value.
	Call C

	resumed, stopped chan struct{}
	// failure is the panic that ended the task.
	failure    any
	background bool
	// abandoned means that the timeline has ended.
	abandoned bool
}

type event struct {
	at         time.Time
	order      int
	background bool
	do         func()
}

// Push schedules do, which must not wait.
func (t *Timeline[C]) Push(d time.Duration, background bool, do func()) {
	t.count++
	if !background {
		t.Busy++
	}
	heap.Push(&t.pending, event{t.Now.Add(max(d, 0)), t.count, background, do})
}

// After schedules a task.
func (t *Timeline[C]) After(d time.Duration, do func()) {
	t.Push(d, false, func() { t.Spawn(false, do) })
}

// Spawn runs a task until it ends or waits.
func (t *Timeline[C]) Spawn(background bool, do func()) {
	one := &Task[C]{background: background, resumed: make(chan struct{}), stopped: make(chan struct{})}
	var next chan func()
	if last := len(t.idle) - 1; last >= 0 {
		next, t.idle = t.idle[last], t.idle[:last]
	} else {
		next = make(chan func())
		go func() {
			for run := range next {
				run()
			}
		}()
	}
	next <- func() {
		defer func() {
			if reason := recover(); reason != t.killed {
				one.failure = reason
			}
			if !one.abandoned { // otherwise the goroutine ends
				t.idle = append(t.idle, next)
			}
			one.stopped <- struct{}{}
		}()
		<-one.resumed
		do()
	}
	t.resume(one)
}

// resume runs a task until it ends or waits again.
func (t *Timeline[C]) resume(one *Task[C]) {
	before := t.Current
	t.Current = one
	delete(t.parked, one)
	one.resumed <- struct{}{}
	<-one.stopped
	t.Current = before
	if one.failure != nil && !one.abandoned {
		panic(one.failure)
	}
}

// park suspends the current task until it is resumed. The caller may be another goroutine on
// which the task waits.
func (t *Timeline[C]) park() {
	one := t.Current
	if !one.abandoned {
		t.parked[one] = true
		one.stopped <- struct{}{}
		<-one.resumed
	}
	if one.abandoned {
		runtime.Goexit()
	}
	var none C
	if one.Call != none {
		one.Call.Resumed()
	}
}

// Sleep suspends the current task for d.
func (t *Timeline[C]) Sleep(d time.Duration) { t.Await(d, nil) }

// Signal is a condition for which tasks can wait.
type Signal struct{ waiting []func() }

// Fire resumes the tasks that wait for the signal.
func (s *Signal) Fire() {
	for _, wake := range s.waiting {
		wake()
	}
	s.waiting = nil
}

// Await suspends the current task until d has passed or the signal fires.
func (t *Timeline[C]) Await(d time.Duration, on *Signal) {
	one, woken := t.Current, false
	wake := func() {
		if !woken {
			woken = true
			t.resume(one)
		}
	}
	t.Push(d, one.background, wake)
	if on != nil {
		on.waiting = append(on.waiting, func() { t.Push(0, one.background, wake) })
	}
	t.park()
}

// Next returns the time of the next event.
func (t *Timeline[C]) Next() (time.Time, bool) {
	if len(t.pending) == 0 {
		return time.Time{}, false
	}
	return t.pending[0].at, true
}

// Step runs the next event.
func (t *Timeline[C]) Step() {
	one, ok := heap.Pop(&t.pending).(event)
	if !ok {
		return
	}
	if !one.background {
		t.Busy--
	}
	if one.at.After(t.Now) {
		t.Now = one.at
	}
	one.do()
}

// Abandon ends the tasks that are still waiting.
func (t *Timeline[C]) Abandon() {
	for one := range t.parked {
		one.abandoned = true
		t.resume(one)
	}
	for _, next := range t.idle {
		close(next)
	}
	t.idle = nil
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
