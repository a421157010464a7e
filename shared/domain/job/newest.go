package job

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// NewestRuns are the newest runs of a job: Count that succeeded, and Count that ended otherwise.
// Skipped runs and children are not counted.
type NewestRuns struct {
	Count int
	found [2]int
	since [2]time.Time
}

// group returns the index of the run's group; ok is false for a run that is not counted.
func (NewestRuns) group(r run.Run) (i int, ok bool) {
	if r.HasParent() {
		return 0, false
	}
	if r.State == run.Completed {
		return 0, !r.Skipped
	}
	return 1, r.State.Terminal()
}

// Add adds a run. Runs are added from the newest to the oldest. complete is true when no further
// run can be one of the newest.
func (n *NewestRuns) Add(r run.Run) (complete bool) {
	if i, ok := n.group(r); ok && n.found[i] < n.Count {
		n.found[i]++
		n.since[i] = r.CreatedAt
	}
	return n.found[0] >= n.Count && n.found[1] >= n.Count
}

// Has reports whether the run is one of the newest. Later runs than those of Add count as newest.
func (n NewestRuns) Has(r run.Run) bool {
	i, ok := n.group(r)
	return ok && n.Count > 0 && (n.found[i] < n.Count || !r.CreatedAt.Before(n.since[i]))
}
