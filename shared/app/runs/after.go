package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// follow considers each job that comes after the job of an ended run, and records that. It may be
// repeated, also at the same time by several processes: the id of each run follows from its job
// and the graph. A job whose runs it cannot read does not delay the others, which are not considered
// again. Neither do the actions of a run that it skips, which come last.
func (s *Actions) follow(ctx context.Context, r run.Run) error {
	done := run.Followed{Cancelled: r.CancelsRest}
	var failed []error
	var skipped []run.Run
	place := r.PlaceInGraph()
	for _, id := range r.Followers {
		if known := (run.JobRun{JobID: id, RunID: place.RunID(id)}); !r.CancelsRest && slices.Contains(r.Triggered, known) {
			done.Runs = append(done.Runs, known)
			continue
		}
		child, created, err := s.consider(ctx, r, id)
		if created && child.Skipped {
			skipped = append(skipped, *child)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("cannot start job %s after run %s: %w", id, r.ID, err))
		}
		if child != nil {
			done.Runs = append(done.Runs, run.JobRun{JobID: id, RunID: child.ID})
		}
	}
	done.Partly = len(failed) > 0
	_, err := s.apply(ctx, r.Ref(), constantFact(done))
	for i := range skipped {
		s.actForJob(ctx, &skipped[i], skipped[i].Execution.Pending)
	}
	return errors.Join(append(failed, err)...)
}

// consider starts or skips the run of a job that comes after that of r, if its turn has come. It
// returns the run, and whether this call created it; nil without one. A job that does not come after
// that of r any more may have waited for r, and is considered with what it needs now. Of the runs that
// a job comes after, the last to end finds that the others have ended.
func (s *Actions) consider(ctx context.Context, r run.Run, jobID string) (child *run.Run, created bool, err error) {
	next, err := s.store.LoadJob(ctx, r.Tenant, jobID)
	if errors.Is(err, port.ErrNotFound) || err == nil && len(next.Definition.After) == 0 {
		return nil, false, nil // it was deleted or changed
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot read the job: %w", err)
	}
	place := r.PlaceInGraph()
	ref := run.Ref{Tenant: r.Tenant, ID: place.RunID(jobID)}
	for range port.CommitTries {
		known, err := s.store.Load(ctx, ref)
		if err == nil {
			child, err = s.cancelled(ctx, r, known)
			return child, false, err
		}
		if !errors.Is(err, port.ErrNotFound) {
			return nil, false, fmt.Errorf("cannot read its run: %w", err)
		}
		needs, err := s.needs(ctx, r, next)
		if err != nil {
			return nil, false, err
		}
		turn := run.NextTurn(needs)
		if !turn.Start && !turn.Skip {
			waits, err := s.awaitEnds(ctx, needs, jobID)
			if err != nil || waits {
				return nil, false, err
			}
			continue // one of the runs has ended meanwhile
		}
		made, err := s.createNext(ctx, r, next, needs, turn)
		if errors.Is(err, port.ErrConflict) {
			continue // another process has created it
		}
		return &made, err == nil, err
	}
	return nil, false, fmt.Errorf("too many concurrent changes of run %s", ref.ID)
}

// cancelled returns the run of a job that comes after that of r. It requests its end if the graph
// of r is cancelled.
func (s *Actions) cancelled(ctx context.Context, r, child run.Run) (*run.Run, error) {
	if !r.CancelsRest || child.CancelsRest {
		return &child, nil
	}
	reason := fmt.Sprintf("run %s of job %s was cancelled", r.ID, r.JobID)
	child, err := s.applyTo(ctx, child, constantFact(run.RestCancelled{By: "job:" + r.JobID, Reason: reason}))
	if err != nil {
		return nil, fmt.Errorf("cannot cancel run %s: %w", child.ID, err)
	}
	return &child, nil
}

// needs returns what a job needs, with the runs of the graph of r.
func (s *Records) needs(ctx context.Context, r run.Run, next job.Job) ([]run.Need, error) {
	place, needs := r.PlaceInGraph(), next.Definition.Needs()
	for i := range needs {
		if needs[i].JobID == r.JobID {
			needs[i].Run = &r
			continue
		}
		upstream, err := s.store.Load(ctx, run.Ref{Tenant: r.Tenant, ID: place.RunID(needs[i].JobID)})
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the run of job %s: %w", needs[i].JobID, err)
		}
		upstream.CancelsRest = upstream.CancelsRest && !place.Gives(upstream.ID)
		needs[i].Run = &upstream
	}
	return needs, nil
}

// awaitEnds makes the runs that have not ended consider the job at their end. waits is false if one
// of them has ended meanwhile. A run that does not exist yet considers it, because its job does.
func (s *Actions) awaitEnds(ctx context.Context, needs []run.Need, jobID string) (waits bool, err error) {
	waits = true
	for _, n := range needs {
		if n.Run == nil || n.Run.State.Terminal() {
			continue
		}
		after, err := s.applyTo(ctx, *n.Run, constantFact(run.FollowerAdded{JobID: jobID}))
		if err != nil {
			return false, fmt.Errorf("cannot wait for run %s: %w", n.Run.ID, err)
		}
		waits = waits && !after.State.Terminal()
	}
	return waits, nil
}

// createNext creates the run of a job whose turn has come. The error is ErrConflict if the run
// exists.
func (s *Actions) createNext(ctx context.Context, from run.Run, next job.Job, needs []run.Need, turn run.Turn) (created run.Run, err error) {
	inputs, problems := next.Definition.InputValues(nil)
	r := s.host.NewRun(next, s.policy, nil, inputs, spec.Override{})
	var upstream []run.Run
	for _, n := range needs {
		if n.Run != nil {
			upstream = append(upstream, *n.Run)
		}
	}
	r.Graph, r.Lineage = from.After(upstream)
	r.ID, r.ScheduledAt = r.Graph.RunID(next.ID), r.Graph.ScheduledAt()
	if r.ScheduledAt.IsZero() {
		r.RetriedAt = from.Scheduled()
	}
	r.TaskID = run.FiringTaskID(r.Ref(), from.Scheduled())
	r.CorrelationID, r.Workspace, r.Trigger = from.CorrelationID, from.Workspace, run.TriggerAfter
	r.ParentRun, r.Parent = from.ID, from.AsParent()
	r = r.JoinBackfill(from)
	r.CancelsRest = turn.Reason == run.SkipUpstreamCancelled
	switch {
	case turn.Skip:
		r.Missed = &run.Missed{Reason: turn.Reason, By: turn.By}
	case next.Paused:
		r.Missed = &run.Missed{Reason: run.SkipPaused}
	case len(problems) > 0 || len(job.CheckExpanded(r)) > 0:
		r.Missed = &run.Missed{Reason: run.SkipInputs}
	default:
		r.Missed, err = s.refused(ctx, &r)
	}
	if err != nil {
		return run.Run{}, err
	}
	if r.Missed != nil {
		r.Missed.Count, r.Missed.Until = 1, from.Scheduled()
	}
	created, _, err = s.requests.createRun(ctx, r, nil, s.now())
	if err != nil || created.State != run.Pending {
		s.queue.Forget(r)
	}
	return created, err
}
