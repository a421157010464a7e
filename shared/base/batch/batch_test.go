package batch_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/base/batch"
)

func TestEachLimitsCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var active, peak atomic.Int64
		odd := errors.New("odd")
		failed := batch.Each(3, batch.Indexes(10), func(i int) error {
			n := active.Add(1)
			for most := peak.Load(); n > most && !peak.CompareAndSwap(most, n); most = peak.Load() {
			}
			defer active.Add(-1)
			time.Sleep(time.Second) // of the bubble: until all others wait
			if i%2 == 1 {
				return odd
			}
			return nil
		})
		for i, err := range failed {
			if (err != nil) != (i%2 == 1) {
				t.Errorf("got %v at %d, want errors of odd items", err, i)
			}
		}
		if len(failed) != 10 || peak.Load() > 3 {
			t.Errorf("got %d results with %d calls at a time, want 10 with at most 3", len(failed), peak.Load())
		}
	})
}

func TestEachKeepsTheOrderWithoutConcurrency(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 1} {
		var got []int
		batch.Each(most, batch.Indexes(5), func(i int) error { got = append(got, i); return nil })
		if !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
			t.Errorf("got %v with most %d, want the order of the items", got, most)
		}
	}
	if failed := batch.Each(3, nil, func(int) error { return errors.New("called") }); len(failed) != 0 {
		t.Errorf("got %v, want no calls", failed)
	}
}
