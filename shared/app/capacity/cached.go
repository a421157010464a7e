package capacity

import (
	"sync"
	"time"
)

// cached caches a value that is read from the store, and read again when it is too old. The zero
// value is empty.
type cached[T any] struct {
	mu      sync.Mutex
	value   T
	at      time.Time // zero before the first read
	reading bool
}

// get returns the cached value if it is fresh at its age. Otherwise it reads and stores the
// value. While another call reads it, the cached value may be twice as old.
func (k *cached[T]) get(now time.Time, fresh func(T, time.Duration) bool, read func() (T, error)) (value T, err error) {
	k.mu.Lock()
	old, usable := k.at, k.fresh(now, fresh, k.reading)
	value, k.reading = k.value, k.reading || !usable
	k.mu.Unlock()
	if usable {
		return value, nil
	}
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.reading = false
		if err == nil && k.at.Equal(old) { // else another call has stored it since
			k.value, k.at = value, now
		}
	}()
	return read()
}

// peek returns the cached value, and whether it is fresh.
func (k *cached[T]) peek(now time.Time, fresh func(T, time.Duration) bool) (T, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.value, k.fresh(now, fresh, false)
}

func (k *cached[T]) fresh(now time.Time, fresh func(T, time.Duration) bool, reading bool) bool {
	age := now.Sub(k.at)
	if k.at.IsZero() || age < 0 {
		return false
	}
	return fresh(k.value, age) || reading && fresh(k.value, age/2)
}
