package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Actions carries out the actions of jobs. Each may be repeated.
type Actions struct {
	*Lifecycle
	hooks   Hooks
	trigger Trigger
}

// Trigger creates a run of the job of an action for the run that triggers it, once for
// each key. It returns that run, or the failure that says why it cannot be created.
type Trigger func(ctx context.Context, from run.Run, a run.Action, key string) (child *run.JobRun, failure string, err error)

// NewActions returns the actions of jobs. life leaves the actions that follow the end
// of a run to a sweep until it has them.
func NewActions(life *Lifecycle, hooks Hooks, trigger Trigger) *Actions {
	actions := &Actions{life, hooks, trigger}
	life.actions = actions
	return actions
}

// external carries out the part of an action that is outside of the record. reason is
// the constraint, onSuccess, onFailure or onSkip.
func (s *Actions) external(ctx context.Context, r run.Run, a run.Action, reason string) (done run.EndActionDone, err error) {
	switch a.Type {
	case run.ActionWebhook:
		done.Answer, done.Failure, err = s.hooks.Notify(ctx, r, *a.Hook, reason)
	case run.ActionTriggerJob:
		done.Triggered, done.Failure, err = s.triggerJob(ctx, r, a, reason)
	}
	return done, err
}

func (s *Actions) triggerJob(ctx context.Context, r run.Run, a run.Action, reason string) (child *run.JobRun, failure string, err error) {
	lineage := r.Lineage
	if r.JobID != "" {
		lineage = append(slices.Clone(lineage), r.JobID)
	}
	path := strings.Join(append(slices.Clone(lineage), a.JobID), " -> ")
	switch {
	case slices.Contains(lineage, a.JobID):
		return nil, "the jobs trigger each other in a circle: " + path, nil
	case len(lineage) >= run.MaxLineage:
		return nil, fmt.Sprintf("more than %d jobs trigger each other in a row: %s", run.MaxLineage, path), nil
	}
	r.Lineage = lineage
	// No client can send this key: it has a character that is not printable.
	return s.trigger(ctx, r, a, fmt.Sprintf("\x1ftrigger %s %s", r.ID, reason))
}

// notifyFor is how long after the end of a run its webhooks are sent again.
const notifyFor = 24 * time.Hour

// end carries out an action that follows the end of a run, and records that. A webhook that
// is not taken is an error for notifyFor, so that the sweep sends it again.
func (s *Actions) end(ctx context.Context, r run.Run, name run.EndAction) error {
	action, ok := r.ActionOf(name)
	if !ok {
		return fmt.Errorf("run %s has no action %s", r.ID, name)
	}
	done, err := s.external(ctx, r, action, string(name))
	if untaken, ok := errors.AsType[*Untaken](err); ok && !s.now().Before(r.EndedAt.Add(notifyFor)) {
		done.Failure, err = fmt.Sprintf("%s; given up after %d hours", untaken.Detail, notifyFor/time.Hour), nil
	}
	if err != nil {
		return fmt.Errorf("cannot carry out the action %s: %w", name, err)
	}
	done.Action = name
	_, err = s.apply(ctx, r.Ref(), is(done))
	return err
}

// killOld requests the cancellation of the older runs that hold slots of the run's job.
func (s *Actions) killOld(ctx context.Context, r run.Run) error {
	for old, err := range s.olderHolders(ctx, r) {
		if err != nil {
			return err
		}
		reason := "a newer run of the job replaces it: " + r.ID
		if _, err := s.applyTo(ctx, old, is(run.CancelRequested{By: "job:" + r.JobID, Reason: reason})); err != nil {
			return fmt.Errorf("cannot request the end of run %s: %w", old.ID, err)
		}
	}
	return nil
}

// olderHolders iterates over the runs that are older than a run and hold slots of its
// job, also above a limit that was lowered. It ends after an error.
func (s *Lifecycle) olderHolders(ctx context.Context, r run.Run) iter.Seq2[run.Run, error] {
	return func(yield func(run.Run, error) bool) {
		holders, err := s.store.Holders(ctx, r.Tenant, run.JobPool(r.JobID), limit.ConcurrentRuns)
		if err != nil {
			yield(run.Run{}, fmt.Errorf("cannot read the slots of job %s: %w", r.JobID, err))
			return
		}
		for _, ref := range holders {
			old, err := s.store.Load(ctx, ref)
			switch {
			case errors.Is(err, port.ErrNotFound):
				continue
			case err != nil:
				yield(run.Run{}, fmt.Errorf("cannot read run %s: %w", ref.ID, err))
				return
			case old.Older(r) && !yield(old, nil):
				return
			}
		}
	}
}

// Act handles the state ActionRunning: it carries out the action on the violated
// constraints. It may be repeated; a webhook then has the same id, and a job is
// triggered once.
func (s *Actions) Act(ctx context.Context, in StepInput) (run.Route, error) {
	r, done, err := s.begin(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if done {
		return ended(r), nil
	}
	if r, err = s.applyTo(ctx, r, in.visited(is(run.ActionStarted{}))); err != nil {
		return run.Route{}, again(fmt.Errorf("cannot begin the action: %w", err))
	}
	if r.State != run.ActionRunning || r.Acting == nil || r.Acting.Waits || r.Acting.Done {
		return run.RouteOf(r, s.now()), nil
	}
	var result run.ActionEnded
	action, reason := r.ViolationAction()
	if action.Type == run.ActionKillOld {
		err = s.killOld(ctx, r)
	} else {
		var done run.EndActionDone
		done, err = s.external(ctx, r, action, string(reason))
		if untaken, ok := errors.AsType[*Untaken](err); ok { // the run does not wait for it
			done.Failure, err = untaken.Detail, nil
		}
		result.Answer, result.Failure, result.Triggered = done.Answer, done.Failure, done.Triggered
	}
	if err == nil {
		result.Prediction = s.waitsBy(ctx, r, action)
		r, err = s.applyTo(ctx, r, in.visited(is(result)))
	}
	if err != nil {
		return run.Route{}, again(fmt.Errorf("cannot carry out the action %s: %w", action.Type, err))
	}
	return run.RouteOf(r, s.now()), nil
}

// AwaitAction handles the state ActionWaiting: it stores the token, which the commit
// that grants the job's slot completes.
func (s *Actions) AwaitAction(ctx context.Context, in StepInput) error { return s.wait(ctx, in) }

// Triggered is the Trigger of a process that creates runs.
func (s *Requests) Triggered(ctx context.Context, from run.Run, a run.Action, key string) (child *run.JobRun, failure string, err error) {
	stored, err := s.store.LoadJob(ctx, from.Tenant, a.JobID)
	if errors.Is(err, port.ErrNotFound) {
		// An earlier try may have triggered the job before it was deleted.
		gone := fault.New(fault.NotFound, "the job %s does not exist", a.JobID)
		earlier, existing, err := s.refuse(ctx, from.Tenant, &port.IdempotencyKey{Key: key}, gone)
		if existing {
			return &run.JobRun{JobID: earlier.JobID, RunID: earlier.ID}, "", err
		}
		if !errors.Is(err, gone) {
			return nil, "", err
		}
		return nil, gone.Message, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("cannot read job %s: %w", a.JobID, err)
	}
	parameters, failure := from.ParametersOf(a)
	if failure != "" {
		return nil, failure, nil
	}
	if err := checkParameters(stored.Definition, parameters); err != nil {
		return nil, fmt.Sprintf("the job %s refuses the parameters: %v", a.JobID, err), nil
	}
	r := s.host.run(stored, s.policy)
	if r.Exec = from.MayTriggerExec(); s.host.needExec(r.Work) && !r.Exec {
		return nil, fmt.Sprintf("the job %s is of a program of the host: the run and the job that trigger it need the scope exec", a.JobID), nil
	}
	r.Workspace, r.CorrelationID, r.Trigger = from.Workspace, from.CorrelationID, run.TriggerJob
	r.Lineage, r.ParentRun, r.Parent = from.Lineage, from.ID, from.AsParent()
	r.Parameters, r.Work.Program = parameters, r.Work.Program.With(parameters)
	created, _, err := s.create(ctx, r, key, "", nil)
	if f := fault.Of(err); f != nil && (f.Code == fault.AdmissionReject || f.Field == "pool") {
		return nil, f.Message, nil
	}
	if err != nil {
		return nil, "", err
	}
	return &run.JobRun{JobID: created.JobID, RunID: created.ID}, "", nil
}
