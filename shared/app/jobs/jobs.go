package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/host"
	"github.com/sortie-dev/sortie/shared/app/items"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Definitions serves clients that run a definition once.
type Definitions struct {
	runs     Runs
	store    Store
	clock    clock.Clock
	log      *slog.Logger
	capacity *capacity.Caches
	config   Config
	lists    *items.Lists
}

// NewDefinitions returns Definitions with the configured addresses of hooks and check of
// pod specifications.
func NewDefinitions(runs Runs, store Store, config Config) *Definitions {
	c, log, known := runs.Parts()
	return &Definitions{runs, store, c, log, known, config, items.New(store, c)}
}

func (s *Definitions) now() time.Time { return clock.UTC(s.clock) }

// Jobs serves clients that store jobs and run them.
type Jobs struct {
	*Definitions
	firing   Firing
	document func(j job.Job) ([]byte, error)
}

// New returns Jobs. document encodes a job for its events, as clients see it.
func New(definitions *Definitions, firing Firing, document func(j job.Job) ([]byte, error)) *Jobs {
	return &Jobs{definitions, firing, document}
}

// checkJob checks a precondition for a job. stored is nil if the job does not exist.
func checkJob(p change.Precondition, stored *job.Job) error {
	if stored == nil {
		return p.Check("job", "")
	}
	return p.Check("job", Tag(*stored))
}

// Tag returns the entity tag of a version of a job, with its quotes. A job that was deleted
// and created again has other tags.
func Tag(j job.Job) string { return fmt.Sprintf(`"%d-%x"`, j.Version, j.CreatedAt.UnixNano()) }

// Definition reads the definition of the job with an id from a document in YAML or
// JSON. Faults: those of job.DefinitionProblems, of host.Programs.Check, of job.CheckGraph and
// of checkTriggers.
func (s *Jobs) Definition(ctx context.Context, who port.Identity, id string, document []byte) (job.Definition, error) {
	return s.definition(ctx, who, id, document, false)
}

// definition is Definition. For a preview, the jobs that the job comes after need not exist.
func (s *Jobs) definition(ctx context.Context, who port.Identity, id string, document []byte, preview bool) (job.Definition, error) {
	d, err := s.parse(ctx, who, document, job.Deployment{ID: id, WakePrecision: s.firing.Precision()})
	if err != nil {
		return d, err
	}
	problems, unknown, err := d.CheckGraph(s.loader(ctx, who))
	if !preview {
		problems = append(problems, unknown...)
	}
	if err == nil && len(problems) > 0 {
		err = job.NewDefinitionProblems(problems)
	}
	return d, err
}

// parse reads a definition for this deployment.
func (s *Definitions) parse(
	ctx context.Context, who port.Identity, document []byte, deployment job.Deployment,
) (job.Definition, error) {
	var failed error
	deployment.Policy, deployment.CheckURL, deployment.NoBucketKeys = s.config.Policy, s.config.Hooks.CheckAddress, s.config.NoBucketKeys
	deployment.CheckPodSpec = s.config.CheckPodSpec
	deployment.HasPool = func(name string) bool {
		_, err := s.capacity.Pools.Read(ctx, s.capacity.Pools.Ref(who.Tenant, name))
		if errors.Is(err, port.ErrNotFound) {
			return false
		}
		failed = err
		return true
	}
	deployment.OnKubernetes = func(name string) bool {
		p, err := s.capacity.Pools.Pool(ctx, who.Tenant, name)
		return err == nil && p.Placement.Runner == platform.RunnerKubernetes
	}
	d, problems := job.Parse(document, &deployment)
	if failed != nil {
		return job.Definition{}, failed
	}
	if len(problems) > 0 {
		return job.Definition{}, job.NewDefinitionProblems(problems)
	}
	work := d.Run(s.config.Policy).Work
	err := s.config.Host.Check(who, work)
	if err == nil {
		err = s.runs.CheckExports(work, "export")
	}
	if err != nil {
		return job.Definition{}, err
	}
	return d, s.checkTriggers(ctx, who, d)
}

// checkTriggers refuses a definition that triggers a job of a program of the host, if the
// caller lacks the scope exec. Fault: that of host.MissingExec, with the field. A job that does not
// exist yet is checked when it is triggered.
func (s *Definitions) checkTriggers(ctx context.Context, who port.Identity, d job.Definition) error {
	if who.May(access.Exec) {
		return nil
	}
	for field, id := range d.Triggers() {
		triggered, err := s.stored(ctx, who, id)
		if err != nil {
			return err
		}
		if triggered != nil && s.config.Host.NeedsExec(triggered.Run(s.config.Policy).Work) {
			return host.MissingExec(who, field)
		}
	}
	return nil
}

// Put creates a job or changes its definition. The same definition again changes
// nothing. Faults: those of Definition, PreconditionFailed.
func (s *Jobs) Put(
	ctx context.Context, who port.Identity, id string, document []byte, required change.Precondition,
) (j job.Job, created bool, err error) {
	d, err := s.Definition(ctx, who, id, document)
	if err != nil {
		return job.Job{}, false, err
	}
	return s.change(ctx, who, id, required, func(stored *job.Job) (job.Job, error) { return s.defined(ctx, stored, d, who) })
}

// Preview returns the job as Put would store it, and stores nothing. Faults: those of Put, but the
// jobs that the job comes after need not exist yet.
func (s *Jobs) Preview(ctx context.Context, who port.Identity, id string, document []byte, required change.Precondition) (job.Job, error) {
	d, err := s.definition(ctx, who, id, document, true)
	if err != nil {
		return job.Job{}, err
	}
	stored, err := s.stored(ctx, who, id)
	if err == nil {
		err = checkJob(required, stored)
	}
	if err != nil {
		return job.Job{}, err
	}
	return s.defined(ctx, stored, d, who)
}

// defined returns the job with a definition. If stored is nil, it returns a new job, whose
// versions follow those of a deleted job with the same id. Fault: that of mayCall.
func (s *Jobs) defined(ctx context.Context, stored *job.Job, d job.Definition, who port.Identity) (job.Job, error) {
	if stored == nil {
		if err := mayCall(who, d, job.Definition{}); err != nil {
			return job.Job{}, err
		}
		deleted, err := s.store.DeletedVersion(ctx, who.Tenant, d.ID)
		if err != nil {
			return job.Job{}, fmt.Errorf("cannot read the versions of the job: %w", err)
		}
		j := job.Create(who.Tenant, d, who.Subject, s.now()).After(deleted)
		j.Workspace, j.Exec = who.Workspace, who.May(access.Exec)
		return j, nil
	}
	return s.withDefinition(*stored, d, who)
}

// mayCall returns a MissingScope fault if a definition calls an address that the stored one
// does not, and the caller may not choose addresses.
func mayCall(who port.Identity, d, stored job.Definition) error {
	if field := d.NewAddress(stored); field != "" {
		return who.Need(access.WebhooksWrite, field)
	}
	return nil
}

// Patch changes a job by a JSON merge patch of its definition (RFC 7396). Faults: those
// of Definition for the result, PreconditionFailed, NotFound.
func (s *Jobs) Patch(ctx context.Context, who port.Identity, id string, patch []byte, required change.Precondition) (job.Job, error) {
	return s.changeExisting(ctx, who, id, required, func(stored job.Job) (job.Job, error) {
		document, problems, err := stored.Definition.Merge(patch)
		if err != nil {
			return job.Job{}, fmt.Errorf("cannot change the definition: %w", err)
		}
		if len(problems) > 0 {
			return job.Job{}, job.NewDefinitionProblems(problems)
		}
		d, err := s.Definition(ctx, who, id, document)
		if err != nil {
			return job.Job{}, err
		}
		return s.withDefinition(stored, d, who)
	})
}

// withDefinition returns the job with a definition. If the definition is the same, at most Exec
// changes. Fault: that of mayCall.
func (s *Jobs) withDefinition(stored job.Job, d job.Definition, who port.Identity) (job.Job, error) {
	changes, err := job.Diff(stored.Definition, d)
	if err == nil {
		err = mayCall(who, d, stored.Definition)
	}
	if err != nil {
		return stored, err
	}
	if len(changes) == 0 { // a caller with the scope exec adds it, one without it does not remove it
		stored.Exec = stored.Exec || who.May(access.Exec)
		return stored, nil
	}
	stored = stored.Apply(d, who.Subject, s.now())
	stored.Exec = who.May(access.Exec)
	return stored, nil
}

// Pause stops the schedule of a job, and Resume starts it again. Both are idempotent.
// Existing runs are not affected. Faults: NotFound, PreconditionFailed.
func (s *Jobs) Pause(ctx context.Context, who port.Identity, id string, required change.Precondition) (job.Job, error) {
	return s.changeExisting(ctx, who, id, required, func(stored job.Job) (job.Job, error) { return stored.Pause(s.now()), nil })
}

// Resume starts the schedule of a paused job.
func (s *Jobs) Resume(ctx context.Context, who port.Identity, id string, required change.Precondition) (job.Job, error) {
	return s.changeExisting(ctx, who, id, required, func(stored job.Job) (job.Job, error) { return stored.Resume(s.now()), nil })
}

// changeExisting calls change for a job that must exist. Fault: NotFound.
func (s *Jobs) changeExisting(
	ctx context.Context, who port.Identity, id string, required change.Precondition, decide func(stored job.Job) (job.Job, error),
) (job.Job, error) {
	j, _, err := s.change(ctx, who, id, required, func(stored *job.Job) (job.Job, error) {
		if stored == nil {
			return job.Job{}, noJob(id)
		}
		return decide(*stored)
	})
	return j, err
}

// change calls decide with the stored job, nil if it does not exist, and stores the result. It
// repeats both after a conflict. It commits due firings before a change: the change could drop
// them, and moves their wake-up, which may be late, to a later time. The actions of skipped
// firings follow the change, so that no further firing becomes due meanwhile.
func (s *Jobs) change(
	ctx context.Context, who port.Identity, id string, required change.Precondition, decide func(stored *job.Job) (job.Job, error),
) (j job.Job, created bool, err error) {
	var skipped []run.Decision
	defer func() {
		for _, d := range skipped {
			s.runs.ActForSkipped(ctx, d)
		}
	}()
	for range port.CommitTries {
		stored, err := s.stored(ctx, who, id)
		if err == nil {
			err = checkJob(required, stored)
		}
		if err != nil {
			return job.Job{}, false, err
		}
		if j, err = decide(stored); err != nil {
			return job.Job{}, false, err
		}
		if stored != nil && reflect.DeepEqual(j, *stored) {
			return j, false, nil
		}
		if stored != nil && stored.Due(s.now()) {
			fired, err := s.firing.FireDue(ctx, stored.Ref())
			if skipped = append(skipped, fired...); err != nil {
				return job.Job{}, false, err
			}
			continue
		}
		note, err := s.note(ctx, who, stored, &j)
		if err == nil {
			err = s.follow(ctx, j)
		}
		if err == nil {
			err = s.watch(ctx, stored, j)
		}
		if err != nil {
			return job.Job{}, false, err
		}
		err = s.store.SaveJob(ctx, j, note)
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			return job.Job{}, false, fmt.Errorf("cannot store the job: %w", err)
		}
		j.Revision++
		s.log.InfoContext(ctx, "job changed", "job_id", id, "version", j.Version, "paused", j.Paused, "by", who.Subject)
		s.firing.Changed(ctx, j)
		if stored != nil {
			s.applyLimits(ctx, *stored, j)
			s.unfollow(ctx, *stored, j.Definition)
		}
		return j, stored == nil, nil
	}
	return job.Job{}, false, tooManyChanges()
}

// Delete removes a job with its versions. Its runs stay. Faults: NotFound,
// PreconditionFailed, and Unprocessable if other jobs come after it.
func (s *Jobs) Delete(ctx context.Context, who port.Identity, id string, required change.Precondition) error {
	for range port.CommitTries {
		stored, err := s.stored(ctx, who, id)
		if err == nil {
			err = checkJob(required, stored)
		}
		if err != nil {
			return err
		}
		if stored == nil {
			return noJob(id)
		}
		if err := s.checkUnfollowed(ctx, who, *stored); err != nil {
			return err
		}
		note, err := s.note(ctx, who, stored, nil)
		if err != nil {
			return err
		}
		err = s.store.DeleteJob(ctx, *stored, note)
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot delete the job: %w", err)
		}
		s.log.InfoContext(ctx, "job deleted", "job_id", id, "version", stored.Version, "by", who.Subject)
		s.firing.Changed(ctx, job.Job{Tenant: who.Tenant, ID: id})
		s.unfollow(ctx, *stored, job.Definition{})
		return nil
	}
	return tooManyChanges()
}

func noJob(id string) error { return fault.New(fault.NotFound, "no such job: %.70q", id) }

func tooManyChanges() error {
	return fault.New(fault.Unavailable, "too many concurrent changes of the job; retry")
}

// note returns the event of a change of a job. before is nil for a new job, after for a deleted
// one.
func (s *Jobs) note(ctx context.Context, who port.Identity, before, after *job.Job) (note port.Note, err error) {
	of := after
	if after == nil {
		of = before
	}
	c := change.Resource{
		Tenant: of.Tenant, Workspace: of.Workspace, Kind: "job", ID: of.ID,
		Version: of.Version, Revision: of.Revision + 1, Created: of.CreatedAt,
	}
	if before != nil {
		c.Before, err = s.document(*before)
	}
	if err == nil && after != nil {
		c.After, err = s.document(*after)
	}
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode job %s: %w", of.ID, err)
	}
	return c.Note(ctx, who.Actor(), s.now())
}
