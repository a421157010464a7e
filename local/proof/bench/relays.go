package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/bench/relays"
)

// The targets of the relay are printed with the figures.
const (
	relayRefusedGoal = 5 // percent
	relayGoal        = 2 * time.Second
)

// measureRelay measures the relay of a deployment in virtual time, in its own process.
func measureRelay(ctx context.Context, t *table) error {
	return playedParts(ctx, "relays", func(r relays.Result) {
		name := r.Case.Name()
		t.add(name, fmt.Sprintf("commit to stream, p50 / p99 (goal %s) / last", relayGoal), "%.2f / %.2f / %.2f s", r.P50.Seconds(), r.P99.Seconds(), r.Last.Seconds())
		t.add(name, fmt.Sprintf("transactions, failed (goal: at most %d %%)", relayRefusedGoal), "%d, %.1f %%", r.Transactions, r.RefusedPercent())
		t.add(name, "other writes, failed", "%d, %.1f %%", r.Writes, 100*float64(r.RefusedWrites)/float64(max(r.Writes, 1)))
		t.add(name, "throttled requests", "%d", r.Throttled)
		t.add(name, "events, messages of the bus for each", "%d, %.3f", r.Events, r.Copies())
		t.add(name, "write and read units of an event", "%.2f, %.2f", r.Units/float64(r.Events), r.Reads/float64(r.Events))
	})
}

// playRelays measures all cases as tests, because testing/synctest needs a test. It writes
// their results to a file and does not return.
func playRelays(path string) {
	playParts(path, relays.Cases(), relays.Case.Name, relays.Measure)
}
