package runs

import (
	"context"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Commits lets the rooms of shared/app commit facts about runs. It is safe for concurrent use.
type Commits struct{ life *Lifecycle }

// NewCommits returns the commits of a lifecycle.
func NewCommits(life *Lifecycle) Commits { return Commits{life} }

// Store returns the store of the runs.
func (c Commits) Store() port.Store { return c.life.store }

// Parts returns the clock, the log and the caches of the process, which every room uses.
func (c Commits) Parts() (clock.Clock, *slog.Logger, *capacity.Caches) {
	return c.life.clock, c.life.log, c.life.known
}

// Apply decides a fact about a record that was just read, commits the decision and acts on it. It
// returns the newest record, changed or not.
func (c Commits) Apply(ctx context.Context, r run.Run, f run.Fact) (run.Run, error) {
	return c.life.applyTo(ctx, r, constantFact(f))
}

// FillAll grants every free slot of a pool, a job or a key to queued runs, as far as the time of
// ctx permits. The sweep grants the rest.
func (c Commits) FillAll(ctx context.Context, tenant, pool string) { c.life.fillAll(ctx, tenant, pool) }

// Facts reads the pool, the queues, the limits and the results that a run may wait for.
func (c Commits) Facts(ctx context.Context, r run.Run) (explain.Facts, error) {
	return c.life.facts(ctx, r)
}

// InBudget calls do with a context that ends when the budget of ctx is used up; see
// WithEffectBudget. It returns an error if it is already used up.
func (c Commits) InBudget(ctx context.Context, do func(context.Context) error) error {
	return c.life.inBudget(ctx, do)
}

// KeepReplicas updates the replicas of a pool, and logs an error. It does nothing in a process that
// leaves them to a sweep.
func (c Commits) KeepReplicas(ctx context.Context, pool platform.PoolRef) {
	c.life.reconcileNow(ctx, pool)
}

// Describe asks the engines of a pool for their capabilities.
func (c Commits) Describe(ctx context.Context, pool platform.Pool) { c.life.tasks.Describe(ctx, pool) }

// ContextOf returns the largest context that the replicas of a pool have reported; 0 if it is
// unknown.
func (c Commits) ContextOf(ctx context.Context, pool platform.Pool) int {
	return c.life.tasks.ContextOf(ctx, pool)
}

// MayDestroyUnknown returns nil if a machine without a record may be destroyed. It may not be in a
// store that is not claimed, because that store may have lost records.
func (c Commits) MayDestroyUnknown(ctx context.Context, m port.MachineStatus) error {
	return c.life.mayDestroyUnknown(ctx, m)
}

// Creations adds the creation of runs to Commits.
type Creations struct {
	Commits
	Tasks
	requests *Requests
}

// NewCreations returns the creations by requests.
func NewCreations(requests *Requests) Creations {
	return Creations{NewCommits(requests.Lifecycle), NewTasks(requests.Records), requests}
}

// Create assigns the ids of a new run and stores it. existing reports that the idempotency key was
// used; created is then the run of its first use. Requests with the same key must have the same
// digest.
func (c Creations) Create(ctx context.Context, r run.Run, key, digest string) (created run.Run, existing bool, err error) {
	return c.requests.create(ctx, r, key, digest, nil)
}

// TakeSlot takes the run's free slots or enqueues it. It returns the newest record.
func (c Creations) TakeSlot(ctx context.Context, r run.Run) (run.Run, error) {
	return c.requests.takeSlot(ctx, r, StepInput{})
}

// Cancel requests the end of a task; see Requests.Cancel.
func (c Creations) Cancel(ctx context.Context, who port.Identity, taskID, reason string) (run.Run, error) {
	return c.requests.Cancel(ctx, who, taskID, reason)
}

// Refuse returns refusal, or the run of the first use of an idempotency key.
func (c Creations) Refuse(ctx context.Context, tenant string, key *port.IdempotencyKey, refusal error) (known run.Run, existing bool, err error) {
	return c.requests.refuse(ctx, tenant, key, refusal)
}

// JobRuns adds inputs of programs to Creations, for the runs of jobs.
type JobRuns struct {
	Creations
	runs *Runs
}

// NewJobRuns returns the creations by runs.
func NewJobRuns(runs *Runs) JobRuns { return JobRuns{NewCreations(runs.Requests), runs} }

// CreateWithInput is Create for a run whose program has an input.
func (c JobRuns) CreateWithInput(ctx context.Context, r run.Run, key, digest string, input []byte) (created run.Run, existing bool, err error) {
	return c.runs.createWithInput(ctx, r, key, digest, input)
}

// CheckExports refuses an export in a deployment without an entity API. Fault: Unprocessable with
// the field.
func (c JobRuns) CheckExports(w spec.Work, field string) error { return c.runs.checkExports(w, field) }

// ActForSkipped carries out the job's actions for a skipped run, within the effect budget of ctx;
// see WithEffectBudget. The sweep repeats unfinished actions.
func (c JobRuns) ActForSkipped(ctx context.Context, d run.Decision) { c.runs.actForSkipped(ctx, d) }

// OutputRuns lets package downloads expire the outputs of runs.
type OutputRuns struct {
	Tasks
	outputs *Outputs
}

// NewOutputRuns returns the runs of outputs.
func NewOutputRuns(outputs *Outputs) OutputRuns {
	return OutputRuns{NewTasks(outputs.Records), outputs}
}

// Now returns the time of the clock.
func (o OutputRuns) Now() time.Time { return o.outputs.now() }

// Expire commits that the output of a run expires. It returns the newest record.
func (o OutputRuns) Expire(ctx context.Context, r run.Run, f run.OutputExpiring) (run.Run, error) {
	return o.outputs.applyTo(ctx, r, constantFact(f))
}

// DeleteExpired deletes the expired objects of a run.
func (o OutputRuns) DeleteExpired(ctx context.Context, ref run.Ref) error {
	return o.outputs.deleteExpired(ctx, ref)
}
