package clock

import (
	"sync"
	"time"
)

// Virtual is a clock that moves only by Advance. It is safe for concurrent use.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*virtualTimer]struct{}
}

type virtualTimer struct {
	at    time.Time
	fired chan time.Time
	do    func() // if not nil, fire calls it instead of sending to fired
}

func (t *virtualTimer) fire(now time.Time) {
	if t.do != nil {
		go t.do()
		return
	}
	t.fired <- now
}

// NewVirtual returns a clock whose time is start.
func NewVirtual(start time.Time) *Virtual {
	return &Virtual{now: start.UTC(), timers: map[*virtualTimer]struct{}{}}
}

// Now returns the clock's time.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// NewTimer returns a timer that Advance fires.
func (v *Virtual) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := &virtualTimer{at: v.now.Add(d), fired: make(chan time.Time, 1)}
	return t.fired, v.start(t)
}

// afterFunc implements AfterFunc.
func (v *Virtual) afterFunc(d time.Duration, do func()) (stop func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.start(&virtualTimer{at: v.now.Add(d), do: do})
}

// start adds a timer, or fires it at once if it is due. The caller holds v.mu.
func (v *Virtual) start(t *virtualTimer) (stop func()) {
	if !t.at.After(v.now) {
		t.fire(v.now)
		return func() {}
	}
	v.timers[t] = struct{}{}
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.timers, t)
	}
}

// Advance moves the clock by d and fires the timers that are due.
func (v *Virtual) Advance(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = v.now.Add(d)
	for t := range v.timers {
		if !t.at.After(v.now) {
			t.fire(v.now)
			delete(v.timers, t)
		}
	}
}

// Next returns the time of the earliest timer. It returns false if there is no timer.
func (v *Virtual) Next() (time.Time, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var next time.Time
	for t := range v.timers {
		if next.IsZero() || t.at.Before(next) {
			next = t.at
		}
	}
	return next, !next.IsZero()
}
