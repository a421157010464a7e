package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestPagesOfOneTimeDoNotGrow reads jobs that are due at the same time, and runs that were created
// at the same time, in pages. The last page must not pass the rows of the others.
func TestPagesOfOneTimeDoNotGrow(t *testing.T) {
	t.Parallel()
	const n, limit = 60, 10
	ctx, at := t.Context(), time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "sortie.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlite.NewStore(ctx, db, clock.NewVirtual(at))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		id := fmt.Sprintf("x-%03d", i)
		if err := s.SaveJob(ctx, job.Job{Tenant: "acme", ID: id, WakeAt: at}); err != nil {
			t.Fatal(err)
		}
		r := port.WriteOf(run.New(run.Run{Tenant: "acme", ID: id, TaskID: id, JobID: "fan"}, at))
		r.Run.Execution.ActBy = at
		if _, err := s.Create(ctx, r, nil); err != nil {
			t.Fatal(err)
		}
	}
	var steps int64
	db.Observe(func(s sqlite.Statement) { steps += s.Steps })
	for name, read := range map[string]func(after string) (found int, next string, err error){
		"jobs": func(after string) (int, string, error) {
			refs, next, err := s.JobsDue(ctx, at, after, limit)
			return len(refs), next, err
		},
		"due runs": func(after string) (int, string, error) {
			refs, next, err := s.Due(ctx, at, after, limit)
			return len(refs), next, err
		},
		"runs": func(after string) (int, string, error) {
			runs, next, err := s.List(ctx, "acme", port.Page{Limit: limit, Cursor: after})
			return len(runs), next, err
		},
		"runs of a job": func(after string) (int, string, error) {
			runs, next, err := s.List(ctx, "acme", port.Page{Limit: limit, Cursor: after, JobID: "fan"})
			return len(runs), next, err
		},
	} {
		after, all, second := "", 0, int64(0)
		for page := 1; ; page++ {
			steps = 0
			found, next, err := read(after)
			if err != nil {
				t.Fatal(err)
			}
			if all += found; page == 2 {
				second = steps
			}
			if page > 2 && steps > second+second/5 {
				t.Errorf("%s: got %d steps for page %d, want about %d as for page 2", name, steps, page, second)
			}
			if after = next; next == "" {
				break
			}
		}
		if all != n {
			t.Errorf("%s: got %d in all pages, want %d", name, all, n)
		}
	}
}
