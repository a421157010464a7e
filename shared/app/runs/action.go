package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Actions carries out the actions of jobs. Each may be repeated.
type Actions struct {
	*Lifecycle
	hooks    Hooks
	requests *Requests
	// children is nil for the handler of ActionRunning.
	children Children
}

// NewActions returns Actions. requests creates the runs of the jobs that they trigger.
func NewActions(requests *Requests, hooks Hooks) *Actions {
	return &Actions{Lifecycle: requests.Lifecycle, hooks: hooks, requests: requests}
}

// EndActions says who carries out the actions that follow the end of a run: ActForJobs or
// LeaveToSweep.
type EndActions interface {
	// actions returns nil if a sweep carries them out.
	actions(life *Lifecycle, config Config) *Actions
}

// ActForJobs makes a process carry out the actions after the commit that ends the run, and serve
// the children of runs. A sweep repeats what fails.
func ActForJobs(hooks Hooks, hex Hex, children NewChildren) EndActions {
	return actForJobs{hooks, hex, children}
}

type actForJobs struct {
	hooks    Hooks
	hex      Hex
	children NewChildren
}

func (a actForJobs) actions(life *Lifecycle, config Config) *Actions {
	requests := NewRequests(life, a.hex, LeaveToSweep{}, config)
	s := NewActions(requests, a.hooks)
	s.children = a.children(NewCreations(requests), config)
	return s
}

// external performs the external part of an action: it sends the webhook or triggers the job.
// For other types it does nothing. reason is the constraint, onSuccess, onFailure or onSkip.
func (s *Actions) external(ctx context.Context, r run.Run, a spec.Action, reason string) (done run.EndActionDone, err error) {
	switch a.Type {
	case spec.ActionWebhook, spec.ActionNotify:
		done.Answer, done.Failure, err = s.hooks.Notify(ctx, r, *a.Hook, reason)
	case spec.ActionTriggerJob:
		done.Triggered, done.Failure, err = s.triggerJob(ctx, r, a, reason)
	}
	return done, err
}

func (s *Actions) triggerJob(ctx context.Context, r run.Run, a spec.Action, reason string) (child *run.JobRun, failure string, err error) {
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
	return s.requests.Triggered(ctx, r, a, fmt.Sprintf("\x1ftrigger %s %s", r.ID, reason))
}

// end performs an action that follows an event of a run, and records the result. If the receiver
// does not take a webhook, end records the try and returns an error within run.NotifyFor, so that
// the sweep retries it. After that time it records a failure.
func (s *Actions) end(ctx context.Context, r run.Run, e run.Effect) error {
	name, since := e.Action, e.At
	if since.IsZero() {
		since = r.EndedAt
	}
	action, ok := r.ActionOf(name)
	if !ok {
		return fmt.Errorf("run %s has no action %s", r.ID, name)
	}
	done, err := s.external(ctx, r, action, string(name))
	if untaken, ok := errors.AsType[*hook.Untaken](err); ok {
		if s.now().Before(since.Add(run.NotifyFor)) {
			_, noted := s.apply(ctx, r.Ref(), constantFact(run.ActionUntaken{Action: name, Answer: untaken.Detail}))
			return errors.Join(fmt.Errorf("cannot carry out the action %s: %w", name, err), noted)
		}
		done.Failure, err = fmt.Sprintf("%s; given up after %d hours", untaken.Detail, run.NotifyFor/time.Hour), nil
	}
	if err != nil {
		return fmt.Errorf("cannot carry out the action %s: %w", name, err)
	}
	done.Action = name
	_, err = s.apply(ctx, r.Ref(), constantFact(done))
	return err
}

// killOld requests the cancellation of the older runs of the job that the waiting run replaces,
// or that of the run itself if newer ones replace it. It runs after the commit that enqueues
// the run. So at least one of two concurrent runs sees the other.
func (s *Actions) killOld(ctx context.Context, r run.Run) (run.Run, error) {
	slots, err := s.jobLimit(ctx, r)
	if err != nil {
		return r, err
	}
	contenders, err := s.contenders(ctx, r)
	if err != nil {
		return r, err
	}
	replaced, by := r.Replaces(contenders, slots)
	if by != "" {
		return s.applyTo(ctx, r, constantFact(r.Replacement(by)))
	}
	for _, old := range replaced {
		if _, err := s.applyTo(ctx, old, constantFact(old.Replacement(r.ID))); err != nil {
			return r, fmt.Errorf("cannot request the end of run %s: %w", old.ID, err)
		}
	}
	return s.store.Load(ctx, r.Ref())
}

// contenders returns the runs that hold a slot of the job of r, and those that are queued for
// one. It includes holders above a limit that was lowered.
func (s *constraints) contenders(ctx context.Context, r run.Run) (found []run.Run, err error) {
	pool := platform.JobPool(r.JobID)
	holders, err := s.store.Holders(ctx, r.Tenant, pool, limit.ConcurrentRuns)
	if err != nil {
		return nil, fmt.Errorf("cannot read the slots of job %s: %w", r.JobID, err)
	}
	queued, err := s.store.Queue(ctx, r.Tenant, pool, limit.ConcurrentRuns)
	if err != nil {
		return nil, fmt.Errorf("cannot read the queue of job %s: %w", r.JobID, err)
	}
	for _, ref := range append(holders, queued...) {
		other, err := s.store.Load(ctx, ref)
		switch {
		case errors.Is(err, port.ErrNotFound):
		case err != nil:
			return nil, fmt.Errorf("cannot read run %s: %w", ref.ID, err)
		case !slices.ContainsFunc(found, func(r run.Run) bool { return r.ID == ref.ID }): // a run that got its slot meanwhile is in both lists
			found = append(found, other)
		}
	}
	return found, nil
}

// Act handles the state ActionRunning: it carries out the action on the violated constraints.
// It evaluates them again when the wait of the action is over. It may be repeated: a repeated
// webhook has the same id, and a job is triggered once.
func (s *Actions) Act(ctx context.Context, in StepInput) (run.Route, error) {
	r, done, err := s.begin(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if done {
		return ended(r), nil
	}
	if r, err = s.applyTo(ctx, r, in.visited(constantFact(run.ActionStarted{}))); err != nil {
		return run.Route{}, again(fmt.Errorf("cannot begin the action: %w", err))
	}
	if r.ChecksAgain() { // the run may have been cancelled since it was read
		if r, err = s.evaluate(ctx, s.hooks, r, in); err != nil {
			return run.Route{}, again(fmt.Errorf("cannot evaluate the constraints again: %w", err))
		}
	}
	if r.ActionDue() {
		if r, err = s.carryOut(ctx, r, in); err != nil {
			return run.Route{}, again(err)
		}
	}
	if r.AwaitsJobSlot() && r.Acting.Type == spec.ActionKillOld {
		if r, err = s.killOld(ctx, r); err != nil {
			return run.Route{}, again(fmt.Errorf("cannot replace older runs: %w", err))
		}
	}
	return run.RouteOf(r, s.now()), nil
}

// carryOut carries out the action on the violated constraints.
func (s *Actions) carryOut(ctx context.Context, r run.Run, in StepInput) (run.Run, error) {
	var result run.ActionEnded
	action, reason := r.ViolationAction()
	done, err := s.external(ctx, r, action, string(reason))
	if untaken, ok := errors.AsType[*hook.Untaken](err); ok { // the run does not wait for the receiver
		done.Failure, err = untaken.Detail, nil
	}
	result.Answer, result.Failure, result.Triggered = done.Answer, done.Failure, done.Triggered
	if err == nil {
		result.Prediction = s.waitsBy(ctx, r, action)
		r, err = s.applyTo(ctx, r, in.visited(constantFact(result)))
	}
	if err != nil {
		return r, fmt.Errorf("cannot carry out the action %s: %w", action.Type, err)
	}
	return r, nil
}

// AwaitAction handles the state ActionWaiting: it stores the token, which the commit
// that grants the job's slot completes.
func (s *Actions) AwaitAction(ctx context.Context, in StepInput) error { return s.wait(ctx, in) }

// Triggered creates a run of the job of an action for the run from, once for each key. It
// returns that run, or failure, the reason that it cannot be created.
func (s *Requests) Triggered(ctx context.Context, from run.Run, a spec.Action, key string) (child *run.JobRun, failure string, err error) {
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
	if problems := stored.Definition.CheckParameters(parameters); len(problems) > 0 {
		return nil, fmt.Sprintf("the job %s refuses the parameters: %v", a.JobID, job.NewDefinitionProblems(problems)), nil
	}
	inputs, problems := stored.Definition.InputValues(nil)
	if len(problems) > 0 {
		return nil, fmt.Sprintf("the job %s cannot be triggered: %v", a.JobID, job.NewDefinitionProblems(problems)), nil
	}
	r := s.host.NewRun(stored, s.policy, parameters, inputs, spec.Override{})
	if r.Exec = from.MayTriggerExec(); s.host.NeedsExec(r.Work) && !r.Exec {
		return nil, fmt.Sprintf("the job %s is of a program of the host: the run and the job that trigger it need the scope exec", a.JobID), nil
	}
	r.Workspace, r.CorrelationID, r.Trigger = from.Workspace, from.CorrelationID, run.TriggerJob
	r.Lineage, r.ParentRun, r.Parent = from.Lineage, from.ID, from.AsParent()
	created, _, err := s.create(ctx, r, key, "", nil)
	if f := fault.Of(err); f != nil && (f.Code == fault.AdmissionReject || f.Field == "pool") {
		return nil, f.Message, nil
	}
	if err != nil {
		return nil, "", err
	}
	return &run.JobRun{JobID: created.JobID, RunID: created.ID}, "", nil
}
