package inferences

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/routing"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/usage"
	"github.com/sortie-dev/sortie/shared/port"
)

// This file has the shadow traffic of models. The acceptance decides which tasks are copied. The
// dispatcher that commits the answer of a task then sends the copy, without a run of its own, and
// records what it has measured in the run of the task. A copy takes no slot from a task; see
// balance.Replicas.TakeIdle. If its process ends, it is lost.

// shadowOf returns the copy of a new run; nil without one. An answer that is not to be stored is not
// copied either, and no model answers a task twice.
func shadowOf(r run.Run, model catalog.Model) *routing.Shadow {
	work := r.Work.Inference
	if work == nil || work.Unstored {
		return nil
	}
	share, ok := model.ShadowOf(r.TaskID)
	if !ok || share.Model == work.ServedModel() {
		return nil
	}
	return &routing.Shadow{Model: share.Model, Percent: share.Percent}
}

// awaitsShadow reports whether a commit with these events has completed a run that is to be copied.
// One commit of a run does.
func awaitsShadow(r run.Run, events []run.Event) bool {
	return r.Shadow != nil && r.Shadow.End == nil && r.State == run.Completed && !r.HidesAnswer() &&
		slices.ContainsFunc(events, func(e run.Event) bool { return e.State == run.Completed && e.From != run.Completed })
}

// startShadow sends the copy of a task in a goroutine of the dispatcher.
func (s *Dispatcher) startShadow(of run.Run) {
	s.start(func(ctx context.Context) {
		end, err := s.copied(ctx, of)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			_, err = s.runs.Apply(ctx, of, run.ShadowEnded{End: end})
		}
		if err != nil {
			s.warn(ctx, of, "cannot send the copy of a task; it is lost", err)
		}
	})
}

// shadowing is a copy that is sent.
type shadowing struct {
	*serving
	clock clock.Clock
	began time.Time
	first time.Time
	// pieces counts those of the answer.
	pieces int
}

// The causes with which a copy is cancelled, and the end of an answer that is too long.
var (
	errYielded = errors.New("a task needs the slot")
	errTooLong = errors.New("the engine exceeds the limit of tokens")
)

// copied sends the copy of a task and returns its end. A fault of the request ends the copy and is no
// error.
func (s *Dispatcher) copied(ctx context.Context, of run.Run) (end routing.ShadowEnd, err error) {
	q, r, err := s.copyOf(ctx, of)
	if end.Pool = r.Slot.Pool; err != nil {
		return dropped(end, err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	yield := func() { stop(errYielded) }
	lease, err := s.idleReplica(ctx, r, yield)
	if err != nil {
		return dropped(end, err)
	}
	defer lease.Release()
	looked := clock.Every(s.clock, shadowLook, func() {
		if busy, err := s.isBusy(ctx, r); busy || err != nil {
			yield()
		}
	})
	defer looked()
	t := &shadowing{serving: &serving{run: r, replica: lease, longest: q.LongestPrompt()}, clock: s.clock, began: s.now()}
	if err = needImages(t.serving, &q); err == nil {
		err = t.ask(ctx, &q, s.shadowLimits(r))
	}
	if end, err = t.ended(end, context.Cause(ctx), err); end.Outcome != routing.ShadowCompleted {
		lease.AwaitFree(context.WithoutCancel(ctx)) // the engine may still have the request
	}
	return end, err
}

// shadowLook is the interval at which a copy checks that its pool still has a free slot.
const shadowLook = time.Second

// dropped returns the end of a copy that was not sent because of a fault.
func dropped(end routing.ShadowEnd, err error) (routing.ShadowEnd, error) {
	if !cannotServe(err) {
		return end, err
	}
	end.Outcome, end.Reason = routing.ShadowDropped, fault.Of(err).Message
	return end, nil
}

// copyOf returns the request of a copy, which wants one answer, and a run for it that is not stored.
func (s *Dispatcher) copyOf(ctx context.Context, of run.Run) (q inference.Request, r run.Run, err error) {
	work := of.Work.Inference
	if of.Shadow.Model == work.ServedModel() {
		return q, r, fault.New(fault.PoolUnavailable, "the model %s has answered the task itself", of.Shadow.Model)
	}
	whole, err := s.Request(ctx, of)
	if err == nil {
		err = s.withImages(ctx, of, whole)
	}
	if err != nil {
		return q, r, err
	}
	q = whole.One(0)
	in := NewTask{
		Identity: port.Identity{Tenant: of.Tenant, Workspace: of.Workspace}, Model: of.Shadow.Model, Workload: port.Workload(work.Workload),
		Request: q, Within: work.Within, stored: inference.Stored{Record: work.Request},
	}
	if !work.OpenEnd {
		in.MaxTokens = work.MaxTokens / whole.Answers()
	}
	model, err := s.model(ctx, in)
	if err != nil {
		return q, r, err
	}
	pool, err := s.poolFor(ctx, in, model)
	if err == nil && (pool.Origin != nil || pool.Sharing != nil) {
		err = fault.New(fault.PoolUnavailable, "the pool %s is shared with other tenants", pool.ID)
	}
	if err != nil {
		return q, r, err
	}
	r, err = s.newRun(in, model, pool, s.contextOf(ctx, pool, model))
	r.TaskID, r.Slot.Pool, r.CreatedAt = of.TaskID, pool.ID, s.now()
	return q, r, err
}

// idleReplica takes a slot of a replica for a copy. Fault: PoolUnavailable if none is free.
func (s *Dispatcher) idleReplica(ctx context.Context, r run.Run, yield func()) (lease *balance.Lease, err error) {
	busy, err := s.isBusy(ctx, r)
	if err == nil && !busy {
		lease, err = s.replicas.TakeIdle(ctx, r, func(ctx context.Context) (platform.Pool, error) { return s.servedPool(ctx, r) }, yield)
	}
	if err == nil && lease == nil {
		err = fault.New(fault.PoolUnavailable, "the pool %s has no free slot", r.Slot.Pool)
	}
	return lease, err
}

// isBusy reports whether the pool of a copy has no free slot. If other dispatchers may serve the pool,
// which do not know of the copy, it must have no task.
func (s *Dispatcher) isBusy(ctx context.Context, r run.Run) (bool, error) {
	pool, err := s.servedPool(ctx, r)
	if err != nil {
		return false, err
	}
	most := 1
	if s.cfg.Alone {
		most = max(pool.Limit, 1)
	}
	holders, err := s.store.Holders(ctx, pool.Tenant, pool.ID, most)
	if err != nil {
		return false, fmt.Errorf("cannot read the slots of pool %s: %w", pool.ID, err)
	}
	return pool.Draining || len(holders) >= most, nil
}

// shadowLimits returns the limits of the request for a copy.
func (s *answering) shadowLimits(r run.Run) port.GenerationLimits {
	most := r.Work.Inference.Within
	if s.most > 0 {
		most = min(most, s.most)
	}
	return port.GenerationLimits{First: min(most, firstPiece), Gap: min(most, pieceGap), Total: most}
}

// ask sends the request of a copy to its replica.
func (t *shadowing) ask(ctx context.Context, q *inference.Request, limits port.GenerationLimits) error {
	done := t.replica.CountRequest()
	defer done()
	var used port.Usage
	var err error
	switch engine := t.replica.Engine(); port.Workload(t.run.Work.Inference.Workload) {
	case port.WorkloadCompletion:
		var end port.GenerationEnd
		end, err = engine.Generate(ctx, *t.generation(q, limits), t.count)
		if errors.Is(err, errTooLong) {
			end.TokensOut, end.Finish, err = t.run.Work.Inference.MaxTokens, port.FinishLength, nil
		}
		used, t.used.Finish = end.Usage, string(end.Finish)
	case port.WorkloadEmbedding:
		var found port.Embedded
		found, err = engine.Embed(ctx, port.Embedding{Model: t.model(), Inputs: q.Input, Tokens: q.Tokens, Dimensions: q.VectorLength, Limits: limits})
		used, t.used.Finish = found.Usage, string(port.FinishStop)
	case port.WorkloadRerank:
		var found port.Ranked
		found, err = engine.Rerank(ctx, port.Reranking{Model: t.model(), Query: q.Query, Documents: q.Input, Limits: limits})
		used, t.used.Finish = found.Usage, string(port.FinishStop)
	}
	t.used.TokensIn, t.used.CachedTokens, t.used.TokensOut = used.TokensIn, used.CachedTokens, used.TokensOut
	return err
}

// count counts a piece of the answer, and drops it.
func (t *shadowing) count(port.Piece) error {
	if t.pieces++; t.pieces == 1 {
		t.first = clock.UTC(t.clock)
	}
	if t.pieces > t.run.Work.Inference.MaxTokens {
		return errTooLong
	}
	return nil
}

// ended returns the end of a copy that was sent.
func (t *shadowing) ended(end routing.ShadowEnd, cause, err error) (routing.ShadowEnd, error) {
	end.DurationMS = clock.UTC(t.clock).Sub(t.began).Milliseconds()
	if !t.first.IsZero() {
		end.FirstTokenMS = t.first.Sub(t.began).Milliseconds()
	}
	switch {
	case errors.Is(cause, errYielded):
		end.Outcome, end.Reason = routing.ShadowDropped, errYielded.Error()
		return end, nil
	case err != nil && fault.Of(err) == nil:
		return end, err
	case err != nil:
		end.Outcome, end.Reason = routing.ShadowFailed, fault.Of(err).Message
		return end, nil
	}
	work := t.run.Work.Inference
	in, out := t.used.TokensIn, t.used.TokensOut
	if in <= 0 || in > t.longest {
		in = work.PromptTokens
	}
	if out < 0 || out > work.MaxTokens {
		out = min(t.pieces, work.MaxTokens)
	}
	end.Outcome, end.Finish, end.Tokens = routing.ShadowCompleted, t.used.Finish, usage.Of(in, t.used.CachedTokens, out)
	end.CostNano = t.run.Reservation.Cost(end.Tokens)
	return end, nil
}
