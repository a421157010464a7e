package port

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// JobStore stores jobs, the versions of their definitions and their last results.
//
// Reads by id are strongly consistent. Jobs and JobsDue may be eventually consistent: they can
// miss recent commits, and JobsDue can return a job that was changed or deleted since. The
// errors of a commit are those of Store.
type JobStore interface {
	// SaveJob writes a job and increments its revision. Revision 0 creates the job; its version
	// must then be above DeletedVersion. Otherwise the revision and CreatedAt must be the
	// stored ones. If not, the error is ErrConflict. A version of the definition stays readable
	// after a later one replaces it. The notes are stored with the job.
	SaveJob(ctx context.Context, j job.Job, notes ...Note) error
	// FireJob saves the job and creates the runs of at most MaxFirings firings: all or nothing.
	// The error is ErrConflict as for SaveJob, or a *Conflict with the run if only the id of a
	// run already exists.
	FireJob(ctx context.Context, j job.Job, firings ...Write) error
	// LoadJob returns a job, or ErrNotFound.
	LoadJob(ctx context.Context, tenant, jobID string) (job.Job, error)
	// JobVersion returns the job as of the last commit with this version of the
	// definition, or ErrNotFound.
	JobVersion(ctx context.Context, tenant, jobID string, version int64) (job.Job, error)
	// DeletedVersion returns the last version of the deleted job with the id; 0 if there was
	// none. It is kept forever, so that no later job reuses a version.
	DeletedVersion(ctx context.Context, tenant, jobID string) (int64, error)
	// DeleteJob removes a job with its versions and its last result; its runs stay. The error
	// is ErrConflict if the stored revision and CreatedAt are not those of j, and for an
	// unknown job. The notes are stored with the deletion.
	DeleteJob(ctx context.Context, j job.Job, notes ...Note) error
	// Jobs returns a page of a tenant's jobs, ordered by id. It uses only the page's Cursor and
	// Limit.
	Jobs(ctx context.Context, tenant string, page Page) (jobs []job.Job, next string, err error)
	// JobsDue returns a page of at most limit jobs with a WakeAt by now, the longest overdue
	// first. It may return a job up to a second late. Paging works as in Store.Due.
	JobsDue(ctx context.Context, now time.Time, after string, limit int) (due []job.Ref, next string, err error)
	// LastResult returns the result of the job's run that ended last, or ErrNotFound. The
	// commit that ends a run of a stored job stores it. Runs that are IgnoredAsPrevious, or belong to
	// an earlier job with the same id, are ignored. The result is kept after the runs are
	// removed.
	LastResult(ctx context.Context, tenant, jobID string) (run.Result, error)
}

// MaxFirings is the maximum number of runs that one FireJob creates.
const MaxFirings = 20
