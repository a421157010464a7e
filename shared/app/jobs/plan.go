package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Explanations explains the states of runs and jobs. It writes nothing.
type Explanations struct{ *Definitions }

// NewExplanations returns Explanations.
func NewExplanations(definitions *Definitions) *Explanations { return &Explanations{definitions} }

// ExplainedRun is a run with its explanation.
type ExplainedRun struct {
	Run run.Run
	explain.Explanation
}

// ExplainRun explains a run of the caller's tenant. NotFound as for Queries.Task.
func (s *Explanations) ExplainRun(ctx context.Context, who port.Identity, id string) (ExplainedRun, error) {
	r, err := s.runs.Find(ctx, who, id)
	if fault.Is(err, fault.NotFound) {
		if x, ok := s.waitingChild(ctx, who, id); ok {
			return x, nil
		}
	}
	if err != nil {
		return ExplainedRun{}, err
	}
	for range port.CommitTries {
		facts, err := s.runs.Facts(ctx, r)
		if err != nil {
			return ExplainedRun{}, err
		}
		after, err := s.runs.Find(ctx, who, id)
		if err != nil {
			return ExplainedRun{}, err
		}
		if after.Version == r.Version {
			x := explain.Run(r, facts)
			x.Graph, err = s.graphOf(ctx, who, r)
			return ExplainedRun{r, x}, err
		}
		r = after // the run changed meanwhile; the facts may be of another state
	}
	return ExplainedRun{}, fault.New(fault.Unavailable, "too many concurrent changes of the run; retry")
}

// waitingChild explains a child that has no run yet.
func (s *Explanations) waitingChild(ctx context.Context, who port.Identity, id string) (x ExplainedRun, ok bool) {
	parentID, number, is := fan.ParentOf(id)
	if !is {
		return x, false
	}
	parent, err := s.runs.Find(ctx, who, parentID)
	if err != nil {
		return x, false
	}
	x.Run, x.Explanation, ok = explain.WaitingChild(parent, number, s.now())
	return x, ok
}

// PlanOnce explains the result that a request for a run without a stored job would have. It
// stores nothing. Faults: those of Definitions.RunOnce for the definition.
func (s *Explanations) PlanOnce(ctx context.Context, who port.Identity, document []byte) (explain.Planned, error) {
	r, _, err := s.adHocRun(ctx, who, document)
	if err != nil {
		return explain.Planned{}, err
	}
	return s.plan(ctx, r)
}

// PlanJob is PlanOnce for a run of a stored job. Faults: those of Jobs.RunJob for the job, and
// Unprocessable for a firing that exists.
func (s *Explanations) PlanJob(ctx context.Context, in RunRequest) (explain.Planned, error) {
	r, _, err := s.manual(ctx, in)
	if err != nil {
		return explain.Planned{}, err
	}
	if r.ID != "" {
		_, err := s.store.Load(ctx, r.Ref())
		if err == nil {
			f := fault.New(fault.Unprocessable, "the job has a firing at this time: run %s; explain that run", r.ID)
			f.Field = "scheduledAt"
			return explain.Planned{}, f
		}
		if !errors.Is(err, port.ErrNotFound) {
			return explain.Planned{}, fmt.Errorf("cannot read the firing: %w", err)
		}
	}
	return s.plan(ctx, r)
}

func (s *Explanations) plan(ctx context.Context, r run.Run) (explain.Planned, error) {
	if _, err := s.capacity.Pools.ForNewRun(ctx, r.Tenant, r.Slot.Pool, r.Work.Kind); err != nil {
		return explain.Planned{}, err
	}
	planned := run.New(r, s.now()).Run
	facts, err := s.runs.Facts(ctx, planned)
	if err != nil {
		return explain.Planned{}, err
	}
	return explain.Plan(planned, facts), nil
}

// explainedRuns is the number of newest runs that the explanation of a job reads.
const explainedRuns = 50

// ExplainedJob is a job with its explanation.
type ExplainedJob struct {
	Job job.Job
	explain.JobExplanation
}

// ExplainJob explains a job of the caller's tenant. Fault: NotFound.
func (s *Explanations) ExplainJob(ctx context.Context, who port.Identity, id string) (ExplainedJob, error) {
	j, err := s.Job(ctx, who, id)
	if err != nil {
		return ExplainedJob{}, err
	}
	facts := explain.JobFacts{Now: s.now(), Slack: job.WakeSlack}
	if facts.Sensor, err = s.sensorState(ctx, j); err != nil {
		return ExplainedJob{}, err
	}
	facts.Runs, _, err = s.store.List(ctx, who.Tenant, port.Page{JobID: id, Limit: explainedRuns})
	if err != nil {
		return ExplainedJob{}, fmt.Errorf("cannot list the runs of the job: %w", err)
	}
	if facts.Jobs, facts.Needs, err = s.upstream(ctx, who, j); err != nil {
		return ExplainedJob{}, err
	}
	x := explain.Job(j, facts)
	x.Graph, err = explain.Graph(j, nil, s.loader(ctx, who), nil)
	return ExplainedJob{j, x}, err
}
