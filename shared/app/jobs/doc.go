// Package jobs has the use cases of jobs: clients store definitions, run them, and ask what would
// happen to a run.
//
// What the room needs of runs and of schedules it declares as Runs and Firing.
package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/host"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Store stores jobs and runs.
type Store interface {
	port.JobStore
	port.RunStore
	port.ResourceStore
}

// Runs are the runs of jobs. All methods are safe for concurrent use.
type Runs interface {
	// Parts returns the clock, the log and the caches of the process.
	Parts() (clock.Clock, *slog.Logger, *capacity.Caches)
	// Find returns a run of the caller's tenant. Fault: NotFound.
	Find(ctx context.Context, who port.Identity, id string) (run.Run, error)
	// Apply commits a fact about a run that was just read, and acts on it. It returns the newest
	// record.
	Apply(ctx context.Context, r run.Run, f run.Fact) (run.Run, error)
	// Create stores a new run. existing reports that the idempotency key was used; created is then
	// the run of its first use. CreateWithInput also stores the input of its program.
	Create(ctx context.Context, r run.Run, key, digest string) (created run.Run, existing bool, err error)
	CreateWithInput(ctx context.Context, r run.Run, key, digest string, input []byte) (created run.Run, existing bool, err error)
	// CheckExports refuses an export in a deployment without an entity API. Fault: Unprocessable
	// with the field.
	CheckExports(w spec.Work, field string) error
	// FillAll grants the free slots of a job or a key to queued runs. The sweep grants the rest.
	FillAll(ctx context.Context, tenant, pool string)
	// ActForSkipped carries out the actions of a job for a skipped firing.
	ActForSkipped(ctx context.Context, d run.Decision)
	// Facts reads what a run waits for.
	Facts(ctx context.Context, r run.Run) (explain.Facts, error)
}

// Firing creates the runs of scheduled jobs.
type Firing interface {
	// FireDue commits the due firings of a job. It returns those that are skipped, also with an
	// error; the caller carries out their actions.
	FireDue(ctx context.Context, ref job.Ref) (skipped []run.Decision, err error)
	// Changed sets the wake-up of a job after its commit.
	Changed(ctx context.Context, j job.Job)
	// Precision returns the precision of wake-ups.
	Precision() time.Duration
}

// Config configures the jobs of a deployment.
type Config struct {
	// Policy is the default policy of runs.
	Policy spec.Policy
	// Host has the images that are programs of the server's host.
	Host host.Programs
	// Hooks has the addresses that hooks may call besides public ones.
	Hooks guard.Policy
	// CheckPodSpec returns the faults of the pod specification of a job, each with its field. nil
	// accepts every specification.
	CheckPodSpec func(document json.RawMessage) []*fault.Fault
	// CheckImage returns an Image fault if the runner of a pool, empty for the default one, has no
	// image of the name. nil accepts every image.
	CheckImage func(ctx context.Context, runner, image string) error
	// HasSecret reports whether a tenant has a secret, for warnings about jobs. nil warns of none.
	HasSecret func(ctx context.Context, tenant, name string) bool
	// NoBucketKeys: workers get no keys of the bucket.
	NoBucketKeys bool
}

// pageSize is the number of runs that are read at a time.
const pageSize = 100
