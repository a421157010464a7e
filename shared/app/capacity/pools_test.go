package capacity

import (
	"context"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// slowPools is a store that returns the limit that a pool had when the read began.
type slowPools struct {
	sizedPools
	clock *clock.Virtual
	reads int
	takes time.Duration
}

func (s *slowPools) LoadPool(context.Context, platform.PoolRef) (platform.Pool, error) {
	s.reads++
	s.clock.Advance(s.takes)
	return platform.Pool{ID: "a", Limit: s.reads}, nil
}

// TestSlowReadOfAPoolIsNotNew reads a pool for longer than its record may be used.
func TestSlowReadOfAPoolIsNotNew(t *testing.T) {
	t.Parallel()
	c := clock.NewVirtual(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC))
	for takes, want := range map[time.Duration]int{0: 1, poolAge: 2} {
		store := &slowPools{clock: c, takes: takes}
		lookup := NewPools(store, c, platform.Pool{})
		for range 2 {
			if _, err := lookup.Pool(t.Context(), "acme", "a"); err != nil {
				t.Fatal(err)
			}
		}
		if store.reads != want {
			t.Errorf("a read of %s: got %d reads for two uses, want %d", takes, store.reads, want)
		}
	}
}
