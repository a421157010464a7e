package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/items"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/rerun"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Runs serves clients that create runs with an input, and those that retry a run.
type Runs struct {
	*Requests
	outputs port.Outputs
	lists   *items.Lists
}

// NewRuns returns Runs. The input of programs is stored in outputs.
func NewRuns(requests *Requests, outputs port.Outputs) *Runs {
	return &Runs{requests, outputs, items.New(requests.store, requests.clock)}
}

// RetryRequest requests a new run with the work of one that has ended.
type RetryRequest struct {
	Identity       port.Identity
	TaskID         string
	IdempotencyKey string
	CorrelationID  string
	// Changes are for the new run. PayloadDigest is its run.Run.PayloadDigest if there are any.
	Changes       job.RetryChanges
	PayloadDigest string
	// TraceParent is the W3C trace context of the request; empty without one.
	TraceParent string
	// Downstream also reruns the jobs that come after the job of the run; see package rerun.
	Downstream bool
}

// Retry creates a run with the work of an ended task, whatever its outcome, and a copy of its
// input; see run.Run.ForRetry. existing as for Submit. Faults: NotFound as for Queries.Task,
// NotEnded, IdempotencyMismatch, AdmissionReject, and those of job.RetryChanges.Of, host.Programs.Check and
// Runs.downstream.
func (s *Runs) Retry(ctx context.Context, in RetryRequest) (r run.Run, existing bool, err error) {
	if err := change.CheckKey(in.IdempotencyKey); err != nil {
		return r, false, err
	}
	old, err := s.find(ctx, in.Identity, in.TaskID)
	if err != nil {
		return r, false, err
	}
	if !old.State.Terminal() {
		return r, false, notEnded(old)
	}
	return s.retry(ctx, old, in)
}

func notEnded(r run.Run) error {
	return fault.New(fault.NotEnded, "the run is %s, want a run that has ended", r.State)
}

// retry is Retry for a run that has ended.
func (s *Runs) retry(ctx context.Context, old run.Run, in RetryRequest) (r run.Run, existing bool, err error) {
	if w := old.Work.Inference; w != nil && (w.Unstored || old.AnswerDeleted) {
		return r, false, fault.New(fault.NotFound, "the request of the task was not stored")
	}
	if r, err = in.Changes.Of(old.ForRetry()); err != nil {
		return r, false, err
	}
	if in.Changes.OnlyFailed {
		if r, err = s.onlyFailed(ctx, old, r); err != nil {
			return r, false, err
		}
	}
	if len(in.Changes.Inputs) > 0 {
		if r.Inputs, err = s.changedInputs(ctx, r, in.Changes.Inputs); err != nil {
			return r, false, err
		}
	}
	if problems := job.CheckExpanded(r); len(problems) > 0 {
		return r, false, job.NewDefinitionProblems(problems)
	}
	if err := s.host.Check(in.Identity, r.Work); err != nil {
		return r, false, err
	}
	input, err := s.inputOf(ctx, old)
	if err != nil {
		return r, false, err
	}
	digest := in.Changes.Digest(old.TaskID)
	if in.Downstream {
		digest = rerun.Digest(digest)
		if err := s.downstream(ctx, old, &r); err != nil {
			return s.refuse(ctx, old.Tenant, under(in.IdempotencyKey, digest), err)
		}
	}
	if !in.Changes.None() {
		r.PayloadDigest = in.PayloadDigest
	}
	r.CorrelationID, r.CreatedBy = in.CorrelationID, in.Identity.Actor()
	r.TraceParent, r.Exec = in.TraceParent, in.Identity.May(access.Exec)
	r.Routes = r.Routes.Limited(in.Identity.Grant.Allows)
	if r.Reservation, err = s.reserve(ctx, r, in.Identity); err != nil {
		return r, false, err
	}
	return s.createWithInput(ctx, r, in.IdempotencyKey, digest, input)
}

// changedInputs returns the inputs of a run of a job with other values. Faults: InvalidRequest for
// a run without a job, Unprocessable if the version of the job is not stored any more,
// DefinitionProblems.
func (s *Runs) changedInputs(ctx context.Context, r run.Run, other map[string]spec.Value) (map[string]spec.Value, error) {
	if r.JobID == "" {
		return nil, fault.Invalid("inputs", "only a run of a job has inputs; leave them out")
	}
	j, err := s.store.LoadJob(ctx, r.Tenant, r.JobID)
	if err == nil && j.Version != r.JobVersion {
		j, err = s.store.JobVersion(ctx, r.Tenant, r.JobID, r.JobVersion)
	}
	if errors.Is(err, port.ErrNotFound) {
		f := fault.New(fault.Unprocessable, "version %d of the job is not stored any more; leave the inputs out, or run the job", r.JobVersion)
		f.Field = "inputs"
		return nil, f
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the job: %w", err)
	}
	all := maps.Clone(r.Inputs)
	if all == nil {
		all = map[string]spec.Value{}
	}
	maps.Copy(all, other)
	values, problems := j.Definition.InputValues(all)
	if len(problems) > 0 {
		return nil, job.NewDefinitionProblems(problems)
	}
	return values, nil
}

// inputOf reads the stored input of a run; nil without one.
func (s *Runs) inputOf(ctx context.Context, r run.Run) ([]byte, error) {
	input := r.Input()
	if input == nil {
		return nil, nil
	}
	if input.Text != "" {
		return []byte(input.Text), nil
	}
	body, _, err := s.outputs.Open(ctx, port.Accepted, input.Key, port.Span{})
	if err != nil {
		return nil, fmt.Errorf("cannot open the input: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(body, input.Size))
	_ = body.Close()
	if err != nil {
		return nil, fmt.Errorf("cannot read the input: %w", err)
	}
	return content, nil
}

// createWithInput is create for a run whose work has a stored input. It deletes that input
// if the run was not created. If that is unknown, the bucket's lifecycle rule deletes it.
func (s *Runs) createWithInput(
	ctx context.Context, r run.Run, key, digest string, input []byte,
) (created run.Run, existing bool, err error) {
	stored := ""
	created, existing, err = s.create(ctx, r, key, digest, func(r *run.Run) error {
		r.Graph = rerun.Begin(*r)
		if r.Work = r.Work.WithInput(nil); len(input) == 0 {
			return nil
		}
		if r.Work.Inference != nil { // as for the first task with the request
			if err := s.store.WriteResources(ctx, []port.Resource{inference.Ticket(r.Tenant, r.TaskID, s.now())}, nil); err != nil {
				return fmt.Errorf("cannot store the ticket of the input: %w", err)
			}
		}
		stored = limit.InputKey(r.Tenant, r.TaskID)
		r.Work = r.Work.WithInput(&spec.Input{Key: stored, Size: int64(len(input))})
		if err := s.outputs.Put(ctx, port.Accepted, stored, inputType, input); err != nil {
			return fmt.Errorf("cannot store the input: %w", err)
		}
		return nil
	})
	if stored != "" && (existing || fault.Is(err, fault.IdempotencyMismatch)) {
		if lost := s.outputs.Delete(ctx, port.Accepted, stored); lost != nil {
			s.log.WarnContext(ctx, "cannot delete the input of a repeated request", "error", lost.Error())
		}
	}
	return created, existing, err
}
