package capacity

import (
	"testing"
	"time"
)

// TestKeptValueIsReadByOneCall asks for an old value while another call reads it.
func TestKeptValueIsReadByOneCall(t *testing.T) {
	t.Parallel()
	var k cached[int]
	now, reads := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), 0
	fresh := func(_ int, age time.Duration) bool { return age < time.Second }
	get := func(at time.Time, meanwhile func()) int {
		t.Helper()
		value, err := k.get(at, fresh, func() (int, error) {
			reads++
			number := reads
			meanwhile()
			return number, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	nothing := func() {}
	soon, later := now.Add(1500*time.Millisecond), now.Add(time.Minute)
	if first, second := get(now, nothing), get(now, nothing); first != 1 || second != 1 {
		t.Errorf("got %d and %d, want one read", first, second)
	}
	during := 0
	if after := get(soon, func() { during = get(soon, nothing) }); during != 1 || after != 2 {
		t.Errorf("got %d during a read and %d by it, want the old value and the new one", during, after)
	}
	if after := get(later, func() { during = get(later, nothing) }); during != 4 || after != 3 {
		t.Errorf("got %d during a read and %d by it, want a value that is much too old to be read by both", during, after)
	}
	if back := get(now, nothing); back != 5 { // the clock was set back
		t.Errorf("got %d, want a value of a later time to be read again", back)
	}
}
