package growth

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

var rewrite = flag.Bool("rewrite", false, "write the document from its figures")

// memory returns a folder in memory where the system has one, because each commit waits for the
// disk.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sortie-growth-") //nolint:usetesting // in memory
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestNothingGrows checks the slopes of counters at small sizes.
func TestNothingGrows(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	sizes := map[string][]int{"queued runs": {60, 240}, "jobs": {100, 400}, "ended runs": {100, 1000, 10_000}, "tenants": {5, 15, 45}}
	for _, a := range Axes(true) { //nolint:paralleltest // as above
		t.Run(a.Name, func(t *testing.T) {
			r, err := a.Measure(t.Context(), memory(t), sizes[a.Name])
			check(t, r, err)
		})
	}
	for _, a := range TableAxes() { //nolint:paralleltest // as above
		t.Run(a.Name, func(t *testing.T) {
			r, err := a.MeasureTable(t.Context(), []int{80, 200})
			check(t, r, err)
		})
	}
}

func check(t *testing.T, r *Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range r.Excess() {
		t.Error(line)
	}
}

// TestGrowthIsFound removes indexes and adds a scan, which the slopes must show.
func TestGrowthIsFound(t *testing.T) { //nolint:paralleltest // as above
	a := Axes(true)[2]
	fill := a.fill
	a.fill = func(ctx context.Context, h *home, from, to int) error {
		if from == 0 {
			for _, index := range []string{"runs_state", "runs_created"} {
				err := h.db.Write(ctx, func(tx *sqlite.Tx) error {
					_, err := tx.Exec("DROP INDEX " + index)
					return err
				})
				if err != nil {
					return err
				}
			}
		}
		return fill(ctx, h, from, to)
	}
	a.operations = append(slices.DeleteFunc(a.operations, func(o operation) bool { return o.name == byError }), operation{name: "count of all", do: func(ctx context.Context, h *home, _ *sample, _ int) error {
		return h.db.Read(ctx, func(tx *sqlite.Tx) error {
			var n int
			return tx.QueryRow("SELECT count(*) FROM runs WHERE length(id) = 0").Scan(&n)
		})
	}})
	r, err := a.Measure(t.Context(), memory(t), []int{50, 500})
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Join(r.Excess(), "\n")
	for _, name := range []string{"list of runs, steps", "list of runs in another state, steps", "count of all, steps"} {
		if !strings.Contains(found, "ended runs, "+name) {
			t.Errorf("got no growth of %s:\n%s", name, found)
		}
	}
}

// TestDocumentIsFresh compares the document with its figures.
func TestDocumentIsFresh(t *testing.T) {
	t.Parallel()
	m, err := readMeasured("..")
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("../"+document, []byte(m.Document()), 0o644); err != nil { //nolint:gosec // a public document
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../" + document)
	if err != nil || string(text) != m.Document() {
		t.Errorf("%s differs from %s (%v), write both with: go run ./local/proof/bench -only growth", document, figures, err)
	}
}
