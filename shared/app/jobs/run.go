package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sortie-dev/sortie/shared/access"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/label"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// RunRequest is a request for a run of a stored job.
type RunRequest struct {
	Identity port.Identity
	JobID    string
	// Parameters are environment variables of this run. They replace those of the job.
	Parameters map[string]string
	// Labels are added to those of the job, and replace those with the same keys.
	Labels map[string]string
	// Override replaces the priority and the key of the job for this run.
	Override run.Override
	// ScheduledAt makes the run a firing at that time, at most limit.Ahead from now;
	// zero starts it now.
	ScheduledAt    time.Time
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
	if r, err = s.manual(ctx, in); err != nil {
		return run.Run{}, false, err
	}
	created, existing, err := s.runs.Create(ctx, r, in.IdempotencyKey, in.digest())
	if r.ID != "" && errors.Is(err, port.ErrConflict) {
		return s.fired(ctx, r, in.Labels)
	}
	return created, existing, err
}

// manual checks a request and returns its run of a stored job. It stores nothing.
func (s *Definitions) manual(ctx context.Context, in RunRequest) (r run.Run, err error) {
	if err := s.checkTime(in.ScheduledAt); err != nil {
		return r, err
	}
	j, err := s.Job(ctx, in.Identity, in.JobID)
	if err != nil {
		return r, err
	}
	r = s.config.Host.NewRun(j, s.config.Policy, in.Parameters, in.Override)
	if err := s.config.Host.Check(in.Identity, r.Work); err != nil {
		return run.Run{}, err
	}
	if problems := j.Definition.CheckParameters(in.Parameters); len(problems) > 0 {
		return run.Run{}, job.NewDefinitionProblems(problems)
	}
	if problems := job.CheckOverride(in.Override); len(problems) > 0 {
		return run.Run{}, job.NewDefinitionProblems(problems)
	}
	r.Labels = label.Of(in.Labels).Apply(r.Labels)
	if problems := job.CheckLabels(r.Labels); len(problems) > 0 {
		return run.Run{}, job.NewDefinitionProblems(problems)
	}
	r.Exec = in.Identity.May(access.Exec)
	r.Workspace, r.CorrelationID = in.Identity.Workspace, in.CorrelationID
	r.CreatedBy, r.TraceParent, r.Trigger = in.Identity.Actor(), in.TraceParent, run.TriggerManual
	if !in.ScheduledAt.IsZero() {
		r.ScheduledAt = in.ScheduledAt.UTC()
		r.ID = run.FiringID(j.ID, r.ScheduledAt)
	}
	return r, nil
}

// fired returns the existing firing at the time of the wanted run. Fault: IdempotencyMismatch
// if that has other parameters, lacks one of the requested labels, or has another override.
func (s *Jobs) fired(ctx context.Context, wanted run.Run, labels map[string]string) (r run.Run, existing bool, err error) {
	r, err = s.store.Load(ctx, wanted.Ref())
	if err != nil {
		return run.Run{}, false, fmt.Errorf("cannot read the firing: %w", err)
	}
	if !maps.Equal(r.Parameters, wanted.Parameters) || r.Override != wanted.Override || !maps.Equal(label.Of(labels).Apply(r.Labels), r.Labels) {
		return run.Run{}, false, fault.New(fault.IdempotencyMismatch, "the job has a firing at this time with other parameters, labels, priority or key; cancel it, or use another time")
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
	if in.Override != (run.Override{}) {
		text = fmt.Appendf(text, " %q %q", in.Override.Priority, in.Override.Key)
	}
	if len(in.Labels) > 0 {
		text = fmt.Appendf(text, " labels %q", label.Text(in.Labels))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
