package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/bench/starts"
)

// The targets of starts are printed with the figures and not asserted. Those of times apply to
// runs on a warm machine: half within a second and 99 of 100 within five, like the goals of
// Kubernetes for pods.
const (
	warmMedianGoal = time.Second
	warmLastGoal   = 5 * time.Second
	refusedGoal    = 2 // percent
)

// measureStarts measures how long runs wait for Fly machines, in virtual time and in its own
// process.
func measureStarts(ctx context.Context, t *table) error {
	return playedParts(ctx, "starts", func(r starts.Result) { addStarts(t, r) })
}

// addStarts adds the rows of one case.
func addStarts(t *table, r starts.Result) {
	name, goal := r.Case.Name(), ""
	if r.Case.Warm && r.OnWarm == r.Case.Runs {
		goal = fmt.Sprintf(" (goal: p50 %s, p99 %s)", warmMedianGoal, warmLastGoal)
	}
	t.add(name, "accept to started, p50 / p95 / p99 / last"+goal, "%.2f / %.2f / %.2f / %.2f s", r.P50.Seconds(), r.P95.Seconds(), r.P99.Seconds(), r.Last.Seconds())
	t.add(name, "of which, means: queue / API with placement and image / boot / worker", "%.2f / %.2f / %.2f / %.2f s",
		r.Queue.Seconds(), r.API.Seconds(), r.Boot.Seconds(), r.Worker.Seconds())
	t.add(name, "runs, on warm machines, failures", "%d, %d, %d", r.Case.Runs, r.OnWarm, r.Failures)
	t.add(name, fmt.Sprintf("calls of the API, refused (goal: at most %d %%)", refusedGoal), "%d, %.1f %%", r.Calls, r.RefusedPercent())
	t.add(name, "machines created, wasted", "%d, %d", r.Created, r.Wasted)
}

// playStarts measures all cases as tests. It does not return.
func playStarts(path string) {
	playParts(path, starts.Cases(), starts.Case.Name, starts.Measure)
}
