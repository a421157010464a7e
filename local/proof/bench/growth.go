package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/local/proof/bench/growth"
)

// growthSizes are the sizes of each part of the measurement growth. BENCH_GROWTH=quick divides
// them by ten, and saves nothing. BENCH_GROWTH_MOST omits larger ones.
func growthSizes() map[string][]int {
	return map[string][]int{
		"growth-queued":       {1_000, 10_000, 100_000},
		"growth-jobs":         {100, 1_000, 10_000},
		"growth-ended":        {10_000, 100_000, 1_000_000, 10_000_000},
		"growth-tenants":      {10, 100, 1_000},
		"growth-table-queued": {100, 1_000, 10_000},
		"growth-table-ended":  {100, 1_000, 10_000},
	}
}

// growthParts returns the parts of the measurement, in the order of their document.
func growthParts() []measurement {
	var all []measurement
	axes := append(growth.Axes(true), growth.TableAxes()...)
	for i, name := range []string{"growth-queued", "growth-jobs", "growth-ended", "growth-tenants", "growth-table-queued", "growth-table-ended"} {
		all = append(all, measurement{name, func(ctx context.Context, t *table) error { return measureGrowth(ctx, t, axes[i], growthSizes()[name]) }})
	}
	return all
}

// growthFolder has the document, from the root of the repository.
const growthFolder = "local/proof/bench"

// measureGrowth measures a part, and writes it to the document.
func measureGrowth(ctx context.Context, t *table, axis growth.Axis, sizes []int) error {
	quick := os.Getenv("BENCH_GROWTH") == "quick"
	if most, err := strconv.Atoi(os.Getenv("BENCH_GROWTH_MOST")); err == nil {
		sizes = slices.DeleteFunc(sizes, func(n int) bool { return n > most })
	}
	if quick {
		for i := range sizes {
			sizes[i] /= 10
		}
	}
	r, err := growthOf(ctx, axis, sizes)
	if err != nil {
		return err
	}
	for _, row := range r.Rows {
		for _, m := range growth.Measures() {
			if slope := row.Slope(m, sizes); slope != 0 {
				t.add(axis.Name+", "+row.Operation, string(m), "slope %.2f, %.0f to %.0f", slope, row.Each[0][m], row.Each[len(sizes)-1][m])
			}
		}
	}
	if quick {
		return nil
	}
	if err := growth.Save(growthFolder, r); err != nil {
		return fmt.Errorf("cannot write the document: %w", err)
	}
	return nil
}

func growthOf(ctx context.Context, axis growth.Axis, sizes []int) (*growth.Result, error) {
	if axis.OnTable {
		return axis.MeasureTable(ctx, sizes)
	}
	dir, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return axis.Measure(ctx, dir, sizes)
}
