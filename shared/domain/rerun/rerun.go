// Package rerun plans reruns of a part of a graph: of a run, and of the jobs that come after it.
//
// A rerun is a graph of its own, which the new run begins. So each of its jobs has at most one run
// in it. The jobs of the part may also come after other jobs: the newest runs of these in the
// graph count as they are. Nothing is rerun before all of them have ended.
package rerun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Field is the member of a request for a rerun of a part of a graph.
const Field = "downstream"

// Downstream returns the jobs that come after j, also those after these, each after the jobs that
// it comes after.
func Downstream(j job.Job, load job.Loader) ([]job.Job, error) {
	graph, err := j.Graph(load)
	if err != nil {
		return nil, err
	}
	in, found := map[string]bool{j.ID: true}, []job.Job(nil)
	for _, next := range graph {
		if slices.ContainsFunc(next.Definition.After, func(a job.Dependency) bool { return in[a.Job] }) {
			in[next.ID], found = true, append(found, next)
		}
	}
	return found, nil
}

// Newest returns the newest run of a job in the original graph of a run, reruns included; nil
// without one.
type Newest func(jobID string) (*run.Run, error)

// Plan returns the place of the run that reruns old with the jobs that come after it, without Key
// and Root; see Begin. Faults: Unprocessable without such jobs, and for a job that also comes
// after one without a run in the graph; NotEnded.
func Plan(old run.Run, downstream []job.Job, newest Newest) (*run.Graph, error) {
	if len(downstream) == 0 {
		return nil, refused("no job comes after job %s; leave it out", old.JobID)
	}
	part := map[string]bool{old.JobID: true}
	for _, j := range downstream {
		part[j.ID] = true
	}
	place := old.PlaceInGraph()
	place.Origin, place.Key, place.Root, place.Given = old.OriginalGraph(), "", run.JobRun{}, nil
	for _, j := range append([]job.Job{{ID: old.JobID}}, downstream...) {
		if r, err := newest(j.ID); err != nil {
			return nil, err
		} else if r != nil && !r.State.Terminal() {
			return nil, notEnded(*r)
		}
	}
	for _, j := range downstream {
		for _, a := range j.Definition.After {
			if part[a.Job] {
				continue
			}
			part[a.Job] = true // once
			r, err := newest(a.Job)
			switch {
			case err != nil:
				return nil, err
			case r == nil:
				return nil, refused("job %s also comes after job %s, which has no run in the graph; leave it out", j.ID, a.Job)
			case !r.State.Terminal():
				return nil, notEnded(*r)
			}
			place.Given = append(place.Given, run.JobRun{JobID: a.Job, RunID: r.ID})
		}
	}
	slices.SortFunc(place.Given, func(a, b run.JobRun) int { return strings.Compare(a.JobID, b.JobID) })
	return &place, nil
}

// Begin returns the place of a new run that begins a rerun; the place of other runs is unchanged.
func Begin(r run.Run) *run.Graph {
	if r.Graph == nil || r.Graph.Key != "" {
		return r.Graph
	}
	place := *r.Graph
	place.Key, place.Root = r.ID, run.JobRun{JobID: r.JobID, RunID: r.ID}
	return &place
}

func refused(format string, args ...any) error {
	f := fault.New(fault.Unprocessable, format, args...)
	f.Field = Field
	return f
}

func notEnded(r run.Run) error {
	return fault.New(fault.NotEnded, "run %s of job %s is %s, want a run that has ended", r.ID, r.JobID, r.State)
}

// NoJob is the fault of a run without a stored job.
func NoJob(r run.Run) error {
	if r.JobID == "" {
		return fault.Invalid(Field, "only a run of a stored job has jobs after it; leave it out")
	}
	return refused("job %s was deleted; leave it out", r.JobID)
}

// NoParent is the fault of a child, whose output is only a part of that of its parent.
func NoParent(r run.Run) error {
	return refused("the run is a child of run %s; leave it out, or rerun that run", r.Child.Parent)
}

// Digest returns the digest of a request for a rerun with the jobs after it, for the digest of one
// without them.
func Digest(alone string) string { return fmt.Sprintf("%s, %s", alone, Field) }
