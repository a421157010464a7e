package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// effectLimit is the time limit of the effects of one commit and, under WithEffectBudget, of
// all commits of one request.
const effectLimit = 2 * time.Second

// effectBudget is the time that the commits of a request have left for their effects.
type effectBudget struct {
	mu   sync.Mutex
	left time.Duration
}

type effectBudgetKey struct{}

// WithEffectBudget returns a context for one request, whose commits have 2 s together for their
// effects. The sweep carries out the rest.
func WithEffectBudget(ctx context.Context) context.Context {
	ctx, _ = budgetOf(ctx)
	return ctx
}

// WithRequest returns a context with a new effect budget for a request of a client. The events
// of resources that the request changes have its correlation id.
func WithRequest(ctx context.Context, correlationID string) context.Context {
	ctx = context.WithValue(ctx, effectBudgetKey{}, &effectBudget{left: effectLimit})
	return change.WithCorrelationID(ctx, correlationID)
}

// budgetOf returns the budget of ctx, or a new one, and a context with the budget.
func budgetOf(ctx context.Context) (context.Context, *effectBudget) {
	budget, ok := ctx.Value(effectBudgetKey{}).(*effectBudget)
	if !ok {
		budget = &effectBudget{left: effectLimit}
		ctx = context.WithValue(ctx, effectBudgetKey{}, budget)
	}
	return ctx, budget
}

// effects acts on the effects of commits.
type effects struct {
	*Records
	executions port.Executions
	// actions carries out the actions of jobs; nil leaves them to the sweep.
	actions *Actions
	// failed is set when an effect fails, or is left to the sweep of this process.
	failed atomic.Bool
}

// inBudget calls do with a context that ends when the budget of ctx is used up. The end of ctx
// does not end that context, because the effects of a commit do not depend on its caller. The
// commits that do makes share what is left. It returns an error if the budget is already used up.
func (s *effects) inBudget(ctx context.Context, do func(context.Context) error) error {
	_, budget := budgetOf(ctx)
	budget.mu.Lock()
	defer budget.mu.Unlock()
	if budget.left <= 0 {
		return fmt.Errorf("the %s for effects are used up", effectLimit)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget.left)
	defer cancel()
	ctx = context.WithValue(ctx, effectBudgetKey{}, &effectBudget{left: budget.left}) // budget is locked
	began := s.now()
	err := do(ctx)
	budget.left -= max(s.now().Sub(began), 0)
	return err
}

// act tries the effects of a commit once, except those of actForJob and the effects that the
// commit itself has made. The sweep retries failed effects after the record's ActBy.
func (s *effects) act(ctx context.Context, r *run.Run, effects []run.Effect, made map[run.Effect]bool) {
	for _, e := range effects {
		if afterCommit(e) || made[e] {
			continue
		}
		err := s.inBudget(ctx, func(ctx context.Context) error { return s.effect(ctx, *r, e) })
		if err != nil {
			s.failed.Store(true)
			s.warn(ctx, *r, "an effect failed and will be retried: "+string(e.Kind), err)
		}
	}
}

// actForJob starts what comes after a run, counts children, and then carries out the actions of a job
// that follow a commit. It runs last, because a receiver of a user may take as long as ctx allows. The
// actions of a run that has not ended are left to the sweep, so that no receiver delays a retry. A
// process without Actions leaves all to the sweep.
func (s *effects) actForJob(ctx context.Context, r *run.Run, effects []run.Effect) {
	if s.actions == nil {
		return
	}
	for _, receivers := range []bool{false, true} {
		for _, e := range effects {
			switch {
			case !afterCommit(e) || receivers != (e.Kind == run.EffectAct):
			case receivers && (s.actions.hooks == nil || !r.State.Terminal()):
				s.failed.Store(true)
			default:
				if err := s.effect(ctx, *r, e); err != nil {
					s.warn(ctx, *r, "an action of the job failed and will be retried: "+cmp.Or(string(e.Action), string(e.Kind)), err)
				}
			}
		}
	}
}

// afterCommit reports whether an effect is left to actForJob.
func afterCommit(e run.Effect) bool {
	return e.Kind == run.EffectAct || e.Kind == run.EffectFollow || e.Kind == run.EffectChildren
}

// effect performs one effect. Each is idempotent: an execution is started by name, and a token
// that is gone was completed before.
func (s *effects) effect(ctx context.Context, r run.Run, e run.Effect) error {
	switch e.Kind {
	case run.EffectStart, run.EffectComplete:
		call, _, err := s.callOf(&r, e)
		if err == nil {
			err = call.Make(ctx, s.executions)
		}
		if errors.Is(err, port.ErrTokenGone) {
			return nil
		}
		return err
	case run.EffectStop:
		return s.executions.Stop(ctx, e.Execution, "the run was cancelled")
	case run.EffectAct:
		if s.actions == nil || s.actions.hooks == nil {
			return errors.New("this function does not act for jobs; the sweep does")
		}
		return s.actions.end(ctx, r, e)
	case run.EffectFollow:
		if s.actions == nil {
			return errors.New("this function does not start what comes after a run; the sweep does")
		}
		return s.actions.follow(ctx, r)
	case run.EffectChildren:
		return s.reconcileChildren(ctx, r)
	}
	return fmt.Errorf("unknown effect %q", e.Kind)
}

// movedOn fails a token whose state has no transition to the record's state. The
// state machine then enters Reconciling, which has all of them.
const movedOn = "MovedOn"

// callOf returns the call of the executions for an effect. ok is false if the effect is no such
// call. A token is completed with the execution's next step.
func (s *effects) callOf(r *run.Run, e run.Effect) (c port.ExecutionCall, ok bool, err error) {
	switch e.Kind {
	case run.EffectStart:
		c.Start = e.Execution
		if c.Data, err = json.Marshal(r.Ref()); err != nil {
			err = fmt.Errorf("cannot encode the execution's input: %w", err)
		}
		return c, true, err
	case run.EffectComplete:
		c.Token = e.Token
		route := run.RouteOf(*r, s.now())
		if !e.Step.LeadsTo(route) {
			c.Error, c.Cause = movedOn, string(route.Next)
			return c, true, nil
		}
		if c.Data, err = json.Marshal(route); err != nil {
			err = fmt.Errorf("cannot encode the route: %w", err)
		}
		return c, true, err
	case run.EffectStop, run.EffectAct, run.EffectFollow, run.EffectChildren:
	}
	return c, false, nil
}

// commitWithEffects calls commit for decisions. If the executions are in the same store, their
// calls join the transaction, and made has the effects that the commit made.
func (s *effects) commitWithEffects(
	ctx context.Context, decisions []run.Decision, commit func(context.Context) error,
) (made map[run.Effect]bool, err error) {
	executions, ok := s.executions.(port.JoinedExecutions)
	if !ok {
		return nil, commit(ctx)
	}
	var effects []run.Effect
	var calls []port.ExecutionCall
	for i := range decisions {
		for _, e := range decisions[i].Effects {
			if c, ok, err := s.callOf(&decisions[i].Run, e); ok && err == nil {
				effects, calls = append(effects, e), append(calls, c)
			}
		}
	}
	ctx, finish := executions.Join(ctx, calls...)
	made = map[run.Effect]bool{}
	defer func() {
		for i, is := range finish() {
			made[effects[i]] = is
		}
	}()
	return made, commit(ctx)
}
