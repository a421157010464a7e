package main

import (
	"context"
	"slices"
	"strings"
	"time"
)

// measureAttached measures runs/s alternately without and with one reader of events.
func measureAttached(ctx context.Context, t *table) error {
	const turns, runs = 5, 1000
	c, addresses, err := startStack("-runner", "goroutine")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	if _, err := manyRuns(ctx, addresses.URL, runs); err != nil { // a warm-up
		return err
	}
	var rates [2][]float64
	for turn := range 2 * turns {
		attached := turn % 2
		readers := &streamGroup{address: strings.TrimPrefix(addresses.URL, "http://")}
		if attached == 1 {
			if err := readers.openOne(ctx, "latest"); err != nil {
				return err
			}
		}
		startedAt := time.Now()
		_, err := manyRuns(ctx, addresses.URL, runs)
		rates[attached] = append(rates[attached], runs/time.Since(startedAt).Seconds())
		if attached == 1 && err == nil {
			err = readers.await(runs) // at least one event of each run
		}
		readers.close()
		if err != nil {
			return err
		}
	}
	const name = "runs/s, median of 5 turns"
	for i := range rates {
		slices.Sort(rates[i])
	}
	without, with := rates[0][turns/2], rates[1][turns/2]
	t.add(name, "without a reader of events", "%.0f", without)
	t.add(name, "with one reader", "%.0f", with)
	t.add(name, "difference", "%+.1f %%", 100*(with/without-1))
	return nil
}
