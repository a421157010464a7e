package activity

import (
	"fmt"
	"time"
)

// Window is a span of time that ends now, divided into slots.
type Window struct {
	// Name is the value of the API's parameter.
	Name string
	// Length is the length of a slot. Slots is the number of slots, including the current one.
	Length time.Duration
	Slots  int
}

// Windows returns all windows, the shortest first.
func Windows() []Window {
	return []Window{{"1h", 2 * time.Minute, 31}, {"24h", time.Hour, 25}, {"7d", 6 * time.Hour, 29}}
}

// WindowOf returns a window by its name. ok is false for an unknown one.
func WindowOf(name string) (w Window, ok bool) {
	for _, w := range Windows() {
		if w.Name == name {
			return w, true
		}
	}
	return Window{}, false
}

// Begin returns the start of the slot that contains a time.
func (w Window) Begin(at time.Time) time.Time { return at.UTC().Truncate(w.Length) }

// Starts returns the starts of the slots of the window that ends at now, the oldest first.
func (w Window) Starts(now time.Time) []time.Time {
	starts := make([]time.Time, w.Slots)
	for i := range starts {
		starts[i] = w.Begin(now).Add(time.Duration(i-w.Slots+1) * w.Length)
	}
	return starts
}

// Key returns the name under which a store keeps the slot that starts at a time. The slot of an
// earlier window has the same key and is replaced.
func (w Window) Key(start time.Time) string {
	return fmt.Sprintf("%s/%d", w.Name, start.Unix()/int64(w.Length/time.Second)%int64(w.Slots))
}
