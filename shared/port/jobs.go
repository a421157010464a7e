package port

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/run"
)

// JobStore stores jobs, the versions of their definitions and their last results.
//
// Reads by id are strongly consistent. Jobs and JobsDue may be eventually consistent:
// they can miss recent commits, and JobsDue can return a job that one has changed or
// deleted. The errors of a commit are those of Store.
type JobStore interface {
	// SaveJob writes a job and raises its revision by one. Revision 0 creates the
	// job, whose version must be above DeletedVersion; another one must be the stored
	// revision, and CreatedAt the stored time. Otherwise the error is ErrConflict. A version of the definition stays readable
	// when a later one replaces it. The notes are stored with the job.
	SaveJob(ctx context.Context, j job.Job, notes ...Note) error
	// FireJob saves the job and creates the runs of at most MaxFirings firings, or
	// does nothing. The error is ErrConflict as from SaveJob, or a *Conflict with the
	// run if only the id of a run exists.
	FireJob(ctx context.Context, j job.Job, firings ...Write) error
	// LoadJob returns a job, or ErrNotFound.
	LoadJob(ctx context.Context, tenant, jobID string) (job.Job, error)
	// JobVersion returns the job as of the last commit with this version of the
	// definition, or ErrNotFound.
	JobVersion(ctx context.Context, tenant, jobID string, version int64) (job.Job, error)
	// DeletedVersion returns the version of the job with the id that was deleted last; 0
	// for none. It is kept for good, so that no later job has the version of an earlier one.
	DeletedVersion(ctx context.Context, tenant, jobID string) (int64, error)
	// DeleteJob removes a job with its versions and its last result; its runs stay.
	// The job must have the revision and CreatedAt of j, otherwise the error is
	// ErrConflict, also for an unknown job. The notes are stored with the deletion.
	DeleteJob(ctx context.Context, j job.Job, notes ...Note) error
	// Jobs returns a page of a tenant's jobs, ordered by id. It uses the page's
	// Cursor and Limit only.
	Jobs(ctx context.Context, tenant string, page Page) (jobs []job.Job, next string, err error)
	// JobsDue returns a page of at most limit jobs with a WakeAt by now, the longest
	// overdue first. It may return a job up to a second late. Its pages are those of
	// Store.Due.
	JobsDue(ctx context.Context, now time.Time, after string, limit int) (due []job.Ref, next string, err error)
	// LastResult returns the result of the job's run that ended last, or ErrNotFound.
	// The commit that ends a run of a stored job stores it, unless the run is LookedPast
	// or belongs to an earlier job with the id. It outlives the runs.
	LastResult(ctx context.Context, tenant, jobID string) (run.Result, error)
}

// MaxFirings is the largest number of runs that one FireJob creates.
const MaxFirings = 20
