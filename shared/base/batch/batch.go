// Package batch makes the calls for the items of a list at the same time, up to a limit. It waits
// for all of them.
package batch

import "sync"

// Each calls do for the items, most at a time, and returns the errors in the order of the items.
// The calls for one item, or with most below 2, are made in the caller's goroutine, in order.
func Each[T any](most int, items []T, do func(T) error) []error {
	failed := make([]error, len(items))
	if most <= 1 || len(items) == 1 {
		for i, item := range items {
			failed[i] = do(item)
		}
		return failed
	}
	free := make(chan struct{}, most)
	var all sync.WaitGroup
	for i, item := range items {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			failed[i] = do(item)
		})
	}
	all.Wait()
	return failed
}

// Indexes returns 0 to n-1.
func Indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
