package explain

import (
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// GraphJob is a job of a graph: of jobs that come after each other.
type GraphJob struct {
	Job job.Job
	// Run is the run of the job in the graph of the explained run; nil if it does not exist, or if
	// a job is explained.
	Run *run.Run
}

// FindRun returns the run of a job in a graph; nil if it does not exist.
type FindRun func(place run.Graph, jobID string) (*run.Run, error)

// Graph returns the jobs of the graph of a job, each after those that it comes after. It is
// nil for a job alone. With a run of the job they have the runs of its graph.
func Graph(j job.Job, of *run.Run, load job.Loader, find FindRun) ([]GraphJob, error) {
	jobs, err := j.Graph(load)
	if err != nil || len(jobs) < 2 {
		return nil, err
	}
	graph := make([]GraphJob, len(jobs))
	for i, one := range jobs {
		graph[i].Job = one
		switch {
		case of == nil:
		case one.ID == j.ID:
			graph[i].Run = of
		default:
			if graph[i].Run, err = find(of.PlaceInGraph(), one.ID); err != nil {
				return nil, err
			}
		}
	}
	return graph, nil
}
