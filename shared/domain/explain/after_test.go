package explain_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestRunThatAwaitsAFailureNeedsNoRerun explains runs that were skipped because of another one: only
// a rerun of one that did not succeed can help.
func TestRunThatAwaitsAFailureNeedsNoRerun(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		upstream run.Run
		rerun    bool
		want     string
	}{
		"a success": {run.Run{State: run.Completed}, false, "it succeeded, and the job starts only after its failure"},
		"a failure": {run.Run{State: run.Failed}, true, "did not end as needed"},
		"a skip":    {run.Run{State: run.Completed, Skipped: true}, true, "did not end as needed"},
	} {
		row.upstream.ID, row.upstream.JobID = "extract:1", "extract"
		place, _ := row.upstream.After([]run.Run{row.upstream})
		skipped := run.Run{ID: "alert:1", JobID: "alert", State: run.Completed, Skipped: true, Graph: place, Missed: &run.Missed{
			Reason: run.SkipUpstreamFailed, Count: 1, By: run.JobRun{JobID: "extract", RunID: "extract:1"},
		}}
		x := explain.Run(skipped, explain.Facts{})
		if !strings.Contains(x.Message, row.want) || (x.Change != nil) != row.rerun {
			t.Errorf("%s: got %q and change %+v, want %q and a rerun %t", name, x.Message, x.Change, row.want, row.rerun)
		}
	}
}
