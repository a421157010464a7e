package dynamo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestLoweredLimitIsNotExceededByConcurrentGrants interleaves reads of the
// pool, grants based on them in any order, and releases. Slots above the
// lowered limit may still be held.
func TestLoweredLimitIsNotExceededByConcurrentGrants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		pool := map[int]string{}
		for n := range 12 {
			if rapid.Bool().Draw(t, "held before") {
				pool[n] = fmt.Sprint("old ", n)
			}
		}
		most := max(limit, len(pool))
		var chosen []int
		for step := range 60 {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0: // read the pool
				if n, ok := (&view{held: maps.Clone(pool)}).free(limit, rand.IntN); ok {
					chosen = append(chosen, n)
				}
			case 1: // grant a slot that was free at an earlier read, if it still is
				if len(chosen) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(chosen)-1).Draw(t, "who")
				n := chosen[i]
				chosen = append(chosen[:i], chosen[i+1:]...)
				if pool[n] == "" {
					pool[n] = fmt.Sprint("new ", step)
				}
				if len(pool) > most {
					t.Fatalf("got %d slots held, want at most %d: %v", len(pool), limit, pool)
				}
			case 2: // release a slot
				for n := range pool {
					delete(pool, n)
					break
				}
				most = max(limit, len(pool))
			}
		}
	})
}

func TestFreeSlotIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		held  []int
		limit int
		found bool
	}{
		{nil, 1, true},
		{nil, 0, false},
		{[]int{0}, 1, false},
		{[]int{0, 2}, 3, true},
		{[]int{0, 1, 2}, 3, false},
		{[]int{5}, 2, true},
		{[]int{1, 5}, 2, false},
		{[]int{5, 6}, 2, false},
		{[]int{0, 5}, 3, true},
		{[]int{2, 3}, 3, true},
	} {
		v := &view{held: map[int]string{}}
		for _, n := range test.held {
			v.held[n] = "x"
		}
		n, ok := v.free(test.limit, rand.IntN)
		if ok != test.found || ok && (n >= test.limit || v.held[n] != "") {
			t.Errorf("%v with limit %d: got %d, %v", test.held, test.limit, n, ok)
		}
	}
}
