package batch_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sortie-dev/sortie/shared/base/batch"
)

func TestEachLimitsCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		odd, next, failed := errors.New("odd"), make(chan struct{}), make(chan []error)
		var begun, ended atomic.Int64
		go func() {
			failed <- batch.Each(3, batch.Indexes(10), func(i int) error {
				begun.Add(1)
				<-next
				ended.Add(1)
				if i%2 == 1 {
					return odd
				}
				return nil
			})
		}()
		for range 10 {
			synctest.Wait() // until all goroutines wait
			if active, left := begun.Load()-ended.Load(), 10-ended.Load(); active != min(left, 3) {
				t.Errorf("got %d calls at a time with %d left, want 3, or those that are left", active, left)
			}
			next <- struct{}{}
		}
		got := <-failed
		for i, err := range got {
			if (err != nil) != (i%2 == 1) {
				t.Errorf("got %v at %d, want errors of odd items", err, i)
			}
		}
		if len(got) != 10 {
			t.Errorf("got %d results, want 10", len(got))
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
