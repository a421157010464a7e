package rerun_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/rerun"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// jobs returns jobs from lines such as "report: prices stock", with their followers.
func jobs(lines ...string) map[string]*job.Job {
	all := map[string]*job.Job{}
	for _, line := range lines {
		id, after, _ := strings.Cut(line, ":")
		j := &job.Job{ID: id}
		for up := range strings.FieldsSeq(after) {
			j.Definition.After = append(j.Definition.After, job.Dependency{Job: up})
			all[up].Followers = append(all[up].Followers, id)
		}
		all[id] = j
	}
	return all
}

func TestDownstream(t *testing.T) {
	t.Parallel()
	all := jobs("a", "b: a", "c: a", "d: b c", "e: d", "x", "y: x d")
	for from, want := range map[string]string{"a": "b c d e y", "b": "d e y", "e": "", "x": "y"} {
		found, err := rerun.Downstream(*all[from], func(id string) (*job.Job, error) { return all[id], nil })
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]string, len(found))
		for i, j := range found {
			ids[i] = j.ID
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: got %q, want %q", from, got, want)
		}
	}
}

// TestBegin places only the run that begins a rerun.
func TestBegin(t *testing.T) {
	t.Parallel()
	first := run.Run{ID: "r", JobID: "a", Graph: &run.Graph{Origin: "o"}}
	if g := rerun.Begin(first); g.Key != "r" || g.Root != (run.JobRun{JobID: "a", RunID: "r"}) || g.Origin != "o" || first.Graph.Key != "" {
		t.Errorf("got %+v, want a graph of run r", g)
	}
	other := run.Run{ID: "r", Graph: &run.Graph{Key: "k"}}
	if rerun.Begin(other) != other.Graph || rerun.Begin(run.Run{ID: "r"}) != nil {
		t.Error("got another place for a run that begins no rerun, want its own")
	}
}
