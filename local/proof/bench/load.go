package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/bench/load"
)

// measureLoad puts loads on the deployed system in virtual time, in its own process.
func measureLoad(ctx context.Context, t *table) error {
	return playedParts(ctx, "load", func(r load.Result) { addLoad(t, r) })
}

// addLoad adds the rows of one case.
func addLoad(t *table, r load.Result) {
	name := r.Case.Name()
	t.add(name, "runs, refused, failed, with a second attempt", "%d, %d, %d, %d", r.Runs, r.Refused, r.Failed, r.Again)
	t.add(name, "POST, p50 / p99", "%.0f / %.0f ms", millis(r.PostP50), millis(r.PostP99))
	t.add(name, "accept to started, p50 / p99 / last / p99 of the smaller tenants", "%.2f / %.2f / %.2f / %.2f s",
		r.StartP50.Seconds(), r.StartP99.Seconds(), r.StartLast.Seconds(), r.SmallP99.Seconds())
	t.add(name, "report of the end to the final state, p99", "%.0f ms", millis(r.EndP99))
	t.add(name, "concurrent functions at most, calls refused, cold starts", "%d, %d, %d", r.FunctionPeak, r.FunctionRefusals, r.ColdStarts)
	t.add(name, "write units in a second, at most", "%.0f", r.Units)
	t.add(name, "longest sweep", "%.1f s", r.SweepLast.Seconds())
	var refusals, times []string
	for _, what := range slices.Sorted(maps.Keys(r.Refusals)) {
		refusals, times = append(refusals, "refused "+what), append(times, strconv.Itoa(r.Refusals[what]))
	}
	if len(refusals) > 0 {
		t.add(name, strings.Join(refusals, ", "), "%s", strings.Join(times, ", "))
	}
}

// playLoad measures all cases as tests. It does not return.
func playLoad(path string) {
	playParts(path, load.Cases(), load.Case.Name, load.Measure)
}
