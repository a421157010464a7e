package growth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// Row has the counts of one operation at each size.
type Row struct {
	Operation string
	// Whole reports that the operation handles the whole store, so that it may grow like n log n.
	Whole bool
	Each  []Counts
}

// Result has what was measured on one axis.
type Result struct {
	Axis  string
	Sizes []int
	Rows  []Row
	// Bytes are the sizes of the database, without free pages.
	Bytes []int64
	// Table reports that the store is a DynamoDB table.
	Table bool
}

// restart is the time before which a first sweep looks at everything, as in the stack.
const restart = 20 * 365 * 24 * time.Hour

// Measure fills the folder to each size in turn, and measures the axis's operations.
func (a Axis) Measure(ctx context.Context, dir string, sizes []int) (*Result, error) {
	r, m := &Result{Axis: a.Name, Sizes: sizes}, newMachines(start)
	had := 0
	for i, n := range sizes {
		h, err := openHome(ctx, dir, m, a.limit, uint64(2*i)) //nolint:gosec // few sizes
		if err != nil {
			return nil, err
		}
		err = a.fill(ctx, h, had, n)
		if err := errors.Join(err, h.close()); err != nil {
			return nil, fmt.Errorf("cannot store %d %s: %w", n, a.Name, err)
		}
		if err := a.measure(ctx, r, dir, m, i); err != nil {
			return nil, fmt.Errorf("%d %s: %w", n, a.Name, err)
		}
		had = n
	}
	return r, nil
}

// measure opens the folder again and measures size i.
func (a Axis) measure(ctx context.Context, r *Result, dir string, m *machines, i int) (err error) {
	before := live()
	h, err := openHome(ctx, dir, m, a.limit, uint64(2*i+1)) //nolint:gosec // few sizes
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	at := h.read()
	at[Live] = live() - before
	r.add(Row{Operation: "start", Whole: true}, i, at)
	if err := a.operate(ctx, h, r, i); err != nil {
		return err
	}
	size, err := h.db.Size(ctx)
	r.Bytes = append(r.Bytes, size.Used)
	return err
}

// operate measures the sweeps and the operations at size i.
func (a Axis) operate(ctx context.Context, h *home, r *Result, i int) error {
	for _, sweep := range []struct {
		name  string
		early time.Duration
	}{{"first sweep", restart}, {"sweep", 0}} {
		at, err := h.count(1, func(int) error { return errors.Join(h.system.Sweep(ctx, sweep.early), h.settle(ctx)) })
		if err != nil {
			return err
		}
		r.add(Row{Operation: sweep.name, Whole: true}, i, at)
	}
	s, err := a.sampleOf(ctx, h, r.Sizes[i])
	if err != nil {
		return err
	}
	for _, o := range a.operations {
		if err := o.do(ctx, h, s, repeats); err != nil { // prepares its statements
			return fmt.Errorf("%s: %w", o.name, err)
		}
		at, err := h.count(repeats, func(i int) error { return o.do(ctx, h, s, i) })
		if err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		r.add(Row{Operation: o.name}, i, at)
	}
	return nil
}

// add adds the counts of an operation at a size.
func (r *Result) add(row Row, size int, at Counts) {
	for i := range r.Rows {
		if r.Rows[i].Operation == row.Operation {
			r.Rows[i].Each = append(r.Rows[i].Each, at)
			return
		}
	}
	if size > 0 {
		panic("operation " + row.Operation + " was not measured at the first size")
	}
	row.Each = []Counts{at}
	r.Rows = append(r.Rows, row)
}

// middleOf returns the creation time of a run in the middle of those of the first tenant.
func (a Axis) middleOf(ctx context.Context, h *home, n int) (text string, err error) {
	if a.middle != nil {
		return a.middle(h, n).Add(1).Format(time.RFC3339Nano), nil
	}
	err = h.db.Read(ctx, func(tx *sqlite.Tx) error {
		var first, last, at int64
		if err := tx.QueryRow("SELECT n FROM runs WHERE tenant = ? ORDER BY n LIMIT 1", origin).Scan(&first); err != nil {
			return err
		}
		if err := tx.QueryRow("SELECT n FROM runs WHERE tenant = ? ORDER BY n DESC LIMIT 1", origin).Scan(&last); err != nil {
			return err
		}
		err := tx.QueryRow("SELECT created_at FROM runs WHERE tenant = ? AND n >= ? ORDER BY n LIMIT 1", origin, min(last, (first+last+sampled)/2)).Scan(&at)
		text = time.Unix(0, at+1).UTC().Format(time.RFC3339Nano)
		return err
	})
	return text, err
}

// The limits of slopes. Trees become deeper, which lookups of pages show, and n log n is slightly
// above 1.
const (
	RequestSlope = 0.1
	PagesSlope   = 0.3
	WholeSlope   = 1.15
)

// boundOf returns the size above which an operation must not grow.
func (r *Result) boundOf(name string) int {
	for _, a := range append(Axes(true), TableAxes()...) {
		for _, o := range a.operations {
			if a.Name == r.Axis && o.name == name {
				return o.bound
			}
		}
	}
	return 0
}

// limitOf returns the largest slope that a measure of a row may have, or false without a limit.
func (r *Result) limitOf(row Row, m Measure) (float64, bool) {
	switch {
	case row.Whole:
		return WholeSlope, true
	case r.Sizes[0] < r.boundOf(row.Operation), r.Table && m == Objects: // the fake allocates for its scans
		return 0, false
	case m == Pages:
		return PagesSlope, true
	}
	return RequestSlope, true
}

// negligible is a count of which a multiple is no growth yet.
const negligible = 8

// Slope returns the exponent of the fit of a measure, or 0 if it was not measured.
func (r Row) Slope(m Measure, sizes []int) float64 {
	var x, y, xx, xy float64
	n := float64(len(sizes))
	for i, size := range sizes {
		lx, ly := math.Log(float64(size)), math.Log(max(negligible, r.Each[i][m]))
		x, y, xx, xy = x+lx, y+ly, xx+lx*lx, xy+lx*ly
	}
	if len(sizes) < 2 {
		return 0
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// Excess returns a line for each measure that grows more than it may.
func (r *Result) Excess() (lines []string) {
	for _, row := range r.Rows {
		for _, m := range Measures() {
			if most, ok := r.limitOf(row, m); ok && row.Slope(m, r.Sizes) > most {
				slope := row.Slope(m, r.Sizes)
				var values []float64
				for _, at := range row.Each {
					values = append(values, math.Round(at[m]))
				}
				lines = append(lines, fmt.Sprintf("%s, %s, %s: got %v for %v, slope %.2f, want at most %.2f", r.Axis, row.Operation, m, values, r.Sizes, slope, most))
			}
		}
	}
	return lines
}
