package job_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestNewestRunsOfAJob compares NewestRuns with a count of the newer runs of the same group.
func TestNewestRunsOfAJob(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 4).Draw(t, "count")
		start := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
		var all []run.Run
		for i := range rapid.IntRange(0, 30).Draw(t, "runs") {
			r := run.Run{ID: fmt.Sprint(i), CreatedAt: start.Add(-time.Duration(i) * time.Minute)}
			r.State = rapid.SampledFrom([]run.State{run.Completed, run.Completed, run.Failed, run.Cancelled, run.Orphaned, run.Running}).Draw(t, "state")
			r.Skipped = r.State == run.Completed && rapid.Bool().Draw(t, "skipped")
			if rapid.Bool().Draw(t, "child") {
				r.Child = &fan.Child{Parent: "p"}
			}
			all = append(all, r)
		}
		newest := job.NewestRuns{Count: count}
		for _, r := range all {
			if newest.Add(r) {
				break
			}
		}
		newer := map[bool]int{}
		for _, r := range all {
			counts := r.State.Terminal() && !r.Skipped && !r.HasParent()
			want := counts && newer[r.State == run.Completed] < count
			if got := newest.Has(r); got != want {
				t.Fatalf("run %s %s of %d: got newest %t, want %t", r.ID, r.State, count, got, want)
			}
			if counts {
				newer[r.State == run.Completed]++
			}
		}
	})
}
