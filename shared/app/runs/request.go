package runs

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/host"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Requests serves clients that change tasks.
type Requests struct {
	*Lifecycle
	hex   Hex
	image string
	// budgets is Config.Budgets.
	budgets *budget.Defaults
	// noExports reports that Config.SourceURL is empty.
	noExports bool
	// answers are the streams of inference tasks. If it is nil, a sweep ends the streams of
	// cancelled tasks.
	answers *answer.Streams
}

// TaskStreams says who ends the stream of an inference task after its cancel request: the
// request, in StreamsIn, or LeaveToSweep.
type TaskStreams interface {
	answers(life *Lifecycle, hex Hex) *answer.Streams
}

// StreamsIn makes requests end the streams in a feed.
func StreamsIn(feed port.AnswerFeed) TaskStreams { return streamsIn{feed} }

type streamsIn struct{ feed port.AnswerFeed }

func (s streamsIn) answers(life *Lifecycle, hex Hex) *answer.Streams {
	return answer.NewStreams(s.feed, life.clock, hex)
}

// NewRequests returns Requests with the configured image and default policy.
func NewRequests(life *Lifecycle, hex Hex, streams TaskStreams, config Config) *Requests {
	return &Requests{
		Lifecycle: life, hex: hex, answers: streams.answers(life, hex), image: config.Image, budgets: config.Budgets,
		noExports: config.SourceURL == "",
	}
}

// Submission is a request for a run.
type Submission struct {
	Identity port.Identity
	// Work is the work of the run. An empty Image means the configured image.
	Work    spec.Work
	BatchID string
	// Policy returns the policy of the run for the default policy.
	Policy func(defaults spec.Policy) (spec.Policy, error)
	// IdempotencyKey may be empty. Digest identifies the content of the request. Requests with
	// the same key must have the same digest.
	IdempotencyKey string
	Digest         string
	CorrelationID  string
	// Prepare, unless it is nil, is called with the id of a new task before the task is stored. The
	// task is refused with its error.
	Prepare func(taskID string) error
	// PayloadDigest is run.Run.PayloadDigest.
	PayloadDigest string
	// TraceParent is the W3C trace context of the request; empty without one.
	TraceParent string
}

// Submit creates a run. It returns after the commit; this call or the sweep then
// starts the execution. existing reports that the idempotency key was known and
// nothing was written. Faults: InvalidRequest with the field, IdempotencyMismatch,
// AdmissionReject if the queue is full, Unprocessable for an export without an entity API.
func (s *Requests) Submit(ctx context.Context, in Submission) (r run.Run, existing bool, err error) {
	if err := change.CheckKey(in.IdempotencyKey); err != nil {
		return r, false, err
	}
	policy, err := in.Policy(s.policy)
	if err != nil {
		return r, false, err
	}
	work := in.Work
	if work.Image == "" {
		work.Image = s.image
	}
	var prepare func(*run.Run) error
	if in.Prepare != nil {
		if in.IdempotencyKey != "" {
			key := &port.IdempotencyKey{Key: in.IdempotencyKey, Digest: in.Digest}
			if r, existing, err := s.refuse(ctx, in.Identity.Tenant, key, nil); existing || err != nil {
				return r, existing, err
			}
		}
		prepare = func(r *run.Run) error { return in.Prepare(r.TaskID) }
	}
	return s.create(ctx, run.Run{
		Tenant: in.Identity.Tenant, Workspace: in.Identity.Workspace,
		BatchID: in.BatchID, CorrelationID: in.CorrelationID, Work: work, Policy: policy,
		CreatedBy: in.Identity.Actor(), Exec: in.Identity.May(access.Exec), PayloadDigest: in.PayloadDigest, TraceParent: in.TraceParent,
	}, in.IdempotencyKey, in.Digest, prepare)
}

// Cancel requests the end of a task, in any state. It is idempotent and cannot be undone. It
// returns the record after the request; a task that has ended is returned unchanged. Fault:
// NotFound as for Queries.Task.
func (s *Requests) Cancel(ctx context.Context, who port.Identity, taskID, reason string) (run.Run, error) {
	r, err := s.find(ctx, who, taskID)
	if err != nil {
		return run.Run{}, err
	}
	r, err = s.applyTo(ctx, r, constantFact(cancelRequest(who, reason)))
	if err != nil {
		return run.Run{}, fmt.Errorf("cannot commit the cancel request: %w", err)
	}
	if r.Work.Inference != nil && s.answers != nil {
		// Nothing that the engine sends from now on is part of the stream.
		if err := s.answers.EnsureEnd(ctx, s.store, r.Ref()); err != nil {
			return run.Run{}, fmt.Errorf("cannot end the stream of the task: %w", err)
		}
	}
	return r, nil
}

// cancelRequest returns the cancel request of a caller.
func cancelRequest(who port.Identity, reason string) run.CancelRequested {
	by := who.Actor()
	return run.CancelRequested{By: by.Subject, Scopes: by.Scopes, Reason: limit.Cut(reason, limit.Message)}
}

// create assigns the ids of a new run, except the run id of a firing and a task id that the run
// has, and stores the run.
// existing reports that the idempotency key was used; created is then the run of its first use.
// Every run except that of a schedule is created here. A run of a host program needs Run.Exec.
// Slot.Pool names its pool; empty is the default pool. prepare, if it is not nil, changes the
// run before it is stored.
func (s *Requests) create(
	ctx context.Context, r run.Run, key, digest string, prepare func(*run.Run) error,
) (created run.Run, existing bool, err error) {
	under := under(key, digest)
	if s.host.NeedsExec(r.Work) && !r.Exec {
		return run.Run{}, false, host.MissingExec(port.Identity{}, "image")
	}
	now := s.now()
	if r.ID != "" {
		r.TaskID = run.FiringTaskID(r.Ref(), r.FiringAt(now))
	} else {
		r.TaskID = cmp.Or(r.TaskID, s.newTaskID(r.Work, now))
		r.ID = r.TaskID
	}
	var pool platform.Pool
	if err = s.checkExports(r.Work, ""); err == nil {
		pool, err = s.pools.ForNewRun(ctx, r.Tenant, r.Slot.Pool, r.Work.Kind)
	}
	if err == nil {
		r.Slot.Pool = pool.ID
		err = s.queue.Admit(ctx, pool, r.ID)
	}
	if err != nil {
		return s.refuse(ctx, r.Tenant, under, err)
	}
	defer func() {
		if err != nil || existing || created.State != run.Pending {
			s.queue.Forget(r)
		}
	}()
	if prepare != nil {
		if err := prepare(&r); err != nil {
			return run.Run{}, false, err
		}
	}
	created, known, err := s.createRun(ctx, r, under, now)
	short, refused := errors.AsType[*port.NoBudget](err)
	switch {
	case refused:
		return run.Run{}, false, short.Fault()
	case errors.Is(err, port.ErrKeyTaken):
		return run.Run{}, false, keyMismatch()
	case fault.Is(err, fault.AdmissionReject):
		return s.refuse(ctx, r.Tenant, under, err)
	case err != nil:
		return run.Run{}, false, fmt.Errorf("cannot store the run: %w", err)
	case known != nil:
		return *known, true, nil
	}
	return created, false, nil
}

// under returns the idempotency key of a request; nil without one.
func under(key, digest string) *port.IdempotencyKey {
	if key == "" {
		return nil
	}
	return &port.IdempotencyKey{Key: key, Digest: digest}
}

// checkExports refuses an export in a deployment without an entity API. Fault: Unprocessable
// with the field.
func (s *Requests) checkExports(w spec.Work, field string) error {
	if w.Kind != spec.KindExport || !s.noExports {
		return nil
	}
	f := fault.New(fault.Unprocessable, "this deployment has no entity API to export from; its operator names one with SOURCE_API_URL")
	f.Field = field
	return f
}

// newTaskID returns the id of a new task.
func (s *Requests) newTaskID(w spec.Work, now time.Time) string {
	switch w.Kind {
	case spec.KindInference:
		return s.inferenceTaskID(now)
	case spec.KindExport:
		return fmt.Sprintf("%s_%s_%d_%s", w.Kind, w.Format, now.UnixMilli(), s.hex(4))
	}
	var entropy [10]byte
	_, _ = hex.Decode(entropy[:], []byte(s.hex(len(entropy)))) // hex is hexadecimal
	return spec.JobTaskID(now, entropy)
}

// inferenceTaskID returns the id of a new inference task.
func (s *Requests) inferenceTaskID(now time.Time) string {
	var entropy [10]byte
	_, _ = hex.Decode(entropy[:], []byte(s.hex(len(entropy)))) // hex is hexadecimal
	return spec.InferenceTaskID(now, entropy)
}

// refuse returns the refusal of a new run. If the idempotency key was used, it returns the run
// of the first use instead: such a request creates no run and needs no room in the queue.
func (s *Requests) refuse(ctx context.Context, tenant string, key *port.IdempotencyKey, refusal error) (known run.Run, existing bool, err error) {
	if key == nil {
		return run.Run{}, false, refusal
	}
	known, err = s.store.FindByKey(ctx, tenant, *key)
	switch {
	case errors.Is(err, port.ErrNotFound):
		return run.Run{}, false, refusal
	case errors.Is(err, port.ErrKeyTaken):
		return run.Run{}, false, keyMismatch()
	case err != nil:
		return run.Run{}, false, fmt.Errorf("cannot read the run of the Idempotency-Key: %w", err)
	}
	return known, true, nil
}

func keyMismatch() error {
	return fault.New(fault.IdempotencyMismatch, "the Idempotency-Key was used for another request; use a new key for a new request")
}
