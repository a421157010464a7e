package explain_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestGraphHasTheRunsOfItsKey explains a job between two others, with and without a run.
func TestGraphHasTheRunsOfItsKey(t *testing.T) {
	t.Parallel()
	after := func(id string, upstream ...string) job.Job {
		j := job.Job{ID: id}
		for _, other := range upstream {
			j.Definition.After = append(j.Definition.After, job.Dependency{Job: other})
		}
		return j
	}
	jobs := map[string]job.Job{"load": after("load"), "clean": after("clean", "load"), "report": after("report", "clean"), "alone": after("alone")}
	for id, followers := range map[string][]string{"load": {"clean"}, "clean": {"report"}} {
		j := jobs[id]
		j.Followers = followers
		jobs[id] = j
	}
	load := func(id string) (*job.Job, error) {
		if j, ok := jobs[id]; ok {
			return &j, nil
		}
		return nil, nil
	}
	at := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	first := run.Run{ID: run.FiringID("load", at), JobID: "load", ScheduledAt: at}
	place, _ := first.After([]run.Run{first})
	own := run.Run{ID: "clean:20261128T020000Z", JobID: "clean", Graph: place, State: run.Running}
	find := func(place run.Graph, jobID string) (*run.Run, error) {
		if jobID == "load" && place.RunID(jobID) == first.ID {
			return &first, nil
		}
		return nil, nil
	}
	names := func(graph []explain.GraphJob) (all []string) {
		for _, g := range graph {
			name := g.Job.ID
			if g.Run != nil {
				name += "=" + g.Run.ID
			}
			all = append(all, name)
		}
		return all
	}
	for _, row := range []struct {
		id   string
		of   *run.Run
		want string
	}{
		{"clean", nil, "load clean report"},
		{"clean", &own, "load=" + first.ID + " clean=" + own.ID + " report"},
		{"alone", nil, ""},
	} {
		graph, err := explain.Graph(jobs[row.id], row.of, load, find)
		if got := strings.Join(names(graph), " "); err != nil || got != row.want {
			t.Errorf("%s: got %q and %v, want %q", row.id, got, err, row.want)
		}
	}
	broken := errors.New("no store")
	if _, err := explain.Graph(jobs["clean"], &own, load, func(run.Graph, string) (*run.Run, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the store", err)
	}
}
