package jobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// RunRequest is a request for a run of a stored job.
type RunRequest struct {
	Identity port.Identity
	JobID    string
	// Parameters are environment variables of this run. They replace those of the job.
	Parameters map[string]string
	// Labels are added to those of the job, and replace those with the same keys.
	Labels map[string]string
	// Inputs are values of the inputs that the job declares.
	Inputs map[string]spec.Value
	// Items replace those of the job; nil for none. ItemsFrom is a run whose output has them.
	Items     []spec.Value
	ItemsFrom string
	// Override replaces the priority and the key of the job for this run.
	Override spec.Override
	// ScheduledAt makes the run a firing at that time, at most limit.Ahead from now;
	// zero starts it now.
	ScheduledAt time.Time
	// Backfill is the name of a backfill, a label value. ScheduledAt is then a time of the schedule
	// that has passed. Empty for other runs.
	Backfill       string
	IdempotencyKey string
	CorrelationID  string
	// TraceParent is the W3C trace context of the request; empty without one.
	TraceParent string
}

// RunJob creates a run of a stored job, as Submit does. existing is also true if the job
// already has a firing at ScheduledAt. Faults: NotFound, those of host.Programs.Check and
// Submit, InvalidRequest with the field, IdempotencyMismatch for a firing with other
// parameters.
func (s *Jobs) RunJob(ctx context.Context, in RunRequest) (r run.Run, existing bool, err error) {
	if err := change.CheckKey(in.IdempotencyKey); err != nil {
		return r, false, err
	}
	r, list, err := s.manual(ctx, in)
	if err == nil {
		err = s.saveItems(ctx, r.Tenant, list)
	}
	if err != nil {
		return run.Run{}, false, err
	}
	created, existing, err := s.runs.Create(ctx, r, in.IdempotencyKey, in.digest())
	if r.ID != "" && errors.Is(err, port.ErrConflict) {
		return s.fired(ctx, r, in)
	}
	return created, existing, err
}

// manual checks a request and returns its run of a stored job, and the items to store before the
// run; nil for none. It stores nothing.
func (s *Definitions) manual(ctx context.Context, in RunRequest) (r run.Run, list []fan.Item, err error) {
	if in.Backfill == "" {
		if err := s.checkTime(in.ScheduledAt); err != nil {
			return r, nil, err
		}
	}
	j, err := s.Job(ctx, in.Identity, in.JobID)
	if err != nil {
		return r, nil, err
	}
	if in.Backfill != "" {
		if err := s.checkBackfill(j, in); err != nil {
			return r, nil, err
		}
		in = in.backfill()
	}
	inputs, problems := j.Definition.InputValues(in.Inputs)
	if len(problems) > 0 {
		return r, nil, job.NewDefinitionProblems(problems)
	}
	r = s.config.Host.NewRun(j, s.config.Policy, in.Parameters, inputs, in.Override)
	if err := s.config.Host.Check(in.Identity, r.Work); err != nil {
		return run.Run{}, nil, err
	}
	if problems := j.Definition.CheckParameters(in.Parameters); len(problems) > 0 {
		return run.Run{}, nil, job.NewDefinitionProblems(problems)
	}
	if problems := job.CheckExpanded(r); len(problems) > 0 {
		return run.Run{}, nil, job.NewDefinitionProblems(problems)
	}
	if problems := job.CheckOverride(in.Override); len(problems) > 0 {
		return run.Run{}, nil, job.NewDefinitionProblems(problems)
	}
	r.Labels = label.Of(in.Labels).Apply(r.Labels)
	if problems := job.LabelProblems(label.Check(r.Labels)); len(problems) > 0 {
		return run.Run{}, nil, job.NewDefinitionProblems(problems)
	}
	r.Exec = in.Identity.May(access.Exec)
	r.Workspace, r.CorrelationID = in.Identity.Workspace, in.CorrelationID
	r.CreatedBy, r.TraceParent, r.Trigger = in.Identity.Actor(), in.TraceParent, run.TriggerManual
	if in.Backfill != "" {
		r.Trigger = run.TriggerBackfill
	}
	if !in.ScheduledAt.IsZero() {
		r.ScheduledAt = in.ScheduledAt.UTC()
		r.ID = run.FiringID(j.ID, r.ScheduledAt)
	}
	return s.withItems(ctx, j.Definition, r, in)
}

// backfill returns the request of a backfill with its label, and with a low priority unless it
// has one.
func (in RunRequest) backfill() RunRequest {
	labels := map[string]string{run.BackfillLabel: in.Backfill}
	maps.Copy(labels, in.Labels)
	in.Labels, in.Override.Priority = labels, cmp.Or(in.Override.Priority, spec.PriorityBatch)
	return in
}

// checkBackfill checks the name and the time of a backfill.
func (s *Definitions) checkBackfill(j job.Job, in RunRequest) error {
	at := in.ScheduledAt
	schedule, ok := j.Definition.Times()
	switch {
	case !label.ValidValue(in.Backfill):
		return fault.Invalid("backfill", "malformed name, want 1 to 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit")
	case !ok:
		return fault.Invalid("backfill", "the job has no schedule, want a job with one")
	case at.IsZero() || at.After(s.now()):
		return fault.Invalid("scheduledAt", "missing or future time of a backfill, want a time until %s", s.now().Format(time.RFC3339))
	case !schedule.Has(at):
		return fault.Invalid("scheduledAt", "%s is no time of the job's schedule, want one of them; an interval has none", at.Format(time.RFC3339Nano))
	}
	return nil
}

// fired returns the existing firing at the time of the wanted run. Fault: IdempotencyMismatch
// if that has other parameters or inputs, lacks one of the requested labels, or has another override. A
// backfill accepts any firing.
func (s *Jobs) fired(ctx context.Context, wanted run.Run, in RunRequest) (r run.Run, existing bool, err error) {
	r, err = s.store.Load(ctx, wanted.Ref())
	if err != nil {
		return run.Run{}, false, fmt.Errorf("cannot read the firing: %w", err)
	}
	if in.Backfill != "" {
		return r, true, nil
	}
	if !maps.Equal(r.Parameters, wanted.Parameters) || !maps.Equal(r.Inputs, wanted.Inputs) || r.Override != wanted.Override || !r.Work.Fan.SameRequest(wanted.Work.Fan) || !maps.Equal(label.Of(in.Labels).Apply(r.Labels), r.Labels) {
		return run.Run{}, false, fault.New(fault.IdempotencyMismatch, "the job has a firing at this time with other parameters, inputs, items, labels, priority or key; cancel it, or use another time")
	}
	return r, true, nil
}

func (s *Definitions) checkTime(at time.Time) error {
	if at.IsZero() {
		return nil
	}
	now := s.now()
	if !at.After(now) || at.After(now.Add(limit.Ahead)) || !at.Equal(at.Truncate(time.Second)) {
		return fault.Invalid("scheduledAt", "%s, want a whole second after now, %s, and at most %d days ahead",
			at.Format(time.RFC3339Nano), now.Format(time.RFC3339), limit.Ahead/(24*time.Hour))
	}
	return nil
}

// digest identifies the content of the request.
func (in RunRequest) digest() string {
	parameters, _ := json.Marshal(in.Parameters) //nolint:errchkjson // a map of strings
	text := fmt.Appendf(nil, "run of job %q %q %d", in.JobID, parameters, in.ScheduledAt.Unix())
	if len(in.Inputs) > 0 {
		inputs, _ := json.Marshal(in.Inputs) //nolint:errchkjson // a map of JSON values
		text = fmt.Appendf(text, " with inputs %q", inputs)
	}
	if in.Override != (spec.Override{}) {
		text = fmt.Appendf(text, " %q %q", in.Override.Priority, in.Override.Key)
	}
	if in.Items != nil || in.ItemsFrom != "" {
		items, _ := json.Marshal(in.Items) //nolint:errchkjson // JSON values
		text = fmt.Appendf(text, " items %q from %q", items, in.ItemsFrom)
	}
	if len(in.Labels) > 0 {
		text = fmt.Appendf(text, " labels %q", label.Text(in.Labels))
	}
	if in.Backfill != "" {
		text = fmt.Appendf(text, " backfill %q", in.Backfill)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
