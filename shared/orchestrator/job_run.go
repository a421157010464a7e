package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// JobRunRequest is a request for a run of a stored job.
type JobRunRequest struct {
	Identity port.Identity
	JobID    string
	// Parameters are environment variables of this run. They replace those of the job.
	Parameters map[string]string
	// ScheduledAt makes the run a firing at that time, at most limit.Ahead from now;
	// zero starts it now.
	ScheduledAt    time.Time
	IdempotencyKey string
	CorrelationID  string
}

// RunJob creates a run of a stored job, as Submit does. existing also reports that the
// job has a firing at the time. Faults: NotFound, those of CheckImage and Submit,
// InvalidRequest with the field, IdempotencyMismatch for a firing with other
// parameters.
func (s *Jobs) RunJob(ctx context.Context, in JobRunRequest) (r run.Run, existing bool, err error) {
	if err := checkKey(in.IdempotencyKey); err != nil {
		return r, false, err
	}
	if err := s.checkTime(in.ScheduledAt); err != nil {
		return r, false, err
	}
	j, err := s.Job(ctx, in.Identity, in.JobID)
	if err != nil {
		return r, false, err
	}
	if err := s.CheckImage(in.Identity, j.Definition.Image); err != nil {
		return r, false, err
	}
	if err := checkParameters(in.Parameters); err != nil {
		return r, false, err
	}
	r = j.Definition.Run(s.policy)
	r.Tenant, r.Workspace, r.CorrelationID = in.Identity.Tenant, in.Identity.Workspace, in.CorrelationID
	r.JobVersion, r.Trigger, r.Parameters = j.Version, run.TriggerManual, in.Parameters
	r.Work.Program = r.Work.Program.With(in.Parameters)
	if !in.ScheduledAt.IsZero() {
		r.ScheduledAt = in.ScheduledAt.UTC()
		r.ID = run.FiringID(j.ID, r.ScheduledAt)
	}
	created, existing, err := s.create(ctx, r, in.IdempotencyKey, in.digest(), nil)
	if r.ID != "" && errors.Is(err, port.ErrConflict) {
		return s.fired(ctx, r)
	}
	return created, existing, err
}

// fired returns the firing that exists instead of a new one.
func (s *Jobs) fired(ctx context.Context, wanted run.Run) (r run.Run, existing bool, err error) {
	r, err = s.store.Load(ctx, wanted.Ref())
	if err != nil {
		return run.Run{}, false, fmt.Errorf("cannot read the firing: %w", err)
	}
	if !maps.Equal(r.Parameters, wanted.Parameters) {
		return run.Run{}, false, fault.New(fault.IdempotencyMismatch, "the job has a firing at this time with other parameters; cancel it, or use another time")
	}
	return r, true, nil
}

func (s *Jobs) checkTime(at time.Time) error {
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

// checkParameters returns the DefinitionProblems of environment variables.
func checkParameters(parameters map[string]string) error {
	env := make(map[string]job.Variable, len(parameters))
	for name, value := range parameters {
		env[name] = job.Variable{Value: value}
	}
	if problems := job.CheckEnv("parameters", env); len(problems) > 0 {
		return newDefinitionProblems(problems)
	}
	return nil
}

// digest identifies the content of the request.
func (in JobRunRequest) digest() string {
	parameters, _ := json.Marshal(in.Parameters) //nolint:errchkjson // a map of strings
	sum := sha256.Sum256(fmt.Appendf(nil, "run of job %q %q %d", in.JobID, parameters, in.ScheduledAt.Unix()))
	return hex.EncodeToString(sum[:])
}
