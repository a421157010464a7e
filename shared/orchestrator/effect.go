package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// effectLimit bounds the time that the effects of one commit take and, under
// WithEffectBudget, of all commits of one request.
const effectLimit = 2 * time.Second

// effectBudget is the time that is left for effects, and what else the commits of a request
// share.
type effectBudget struct {
	mu   sync.Mutex
	left time.Duration
	// correlationID is that of a client's request; empty for others.
	correlationID string
}

type effectBudgetKey struct{}

// WithEffectBudget returns a context for one request: its commits share 2 s for their
// effects. Effects beyond that are left to the sweep.
func WithEffectBudget(ctx context.Context) context.Context {
	ctx, _ = budgetOf(ctx)
	return ctx
}

// WithRequest is WithEffectBudget for a new request of a client. The events of resources
// that it changes have its correlation id.
func WithRequest(ctx context.Context, correlationID string) context.Context {
	return context.WithValue(ctx, effectBudgetKey{}, &effectBudget{left: effectLimit, correlationID: correlationID})
}

// correlationOf returns the correlation id of the request of ctx; empty outside one.
func correlationOf(ctx context.Context) string {
	if budget, ok := ctx.Value(effectBudgetKey{}).(*effectBudget); ok {
		return budget.correlationID
	}
	return ""
}

// budgetOf returns the budget of ctx, and a context that has it. Without one it is
// new.
func budgetOf(ctx context.Context) (context.Context, *effectBudget) {
	budget, ok := ctx.Value(effectBudgetKey{}).(*effectBudget)
	if !ok {
		budget = &effectBudget{left: effectLimit}
		ctx = context.WithValue(ctx, effectBudgetKey{}, budget)
	}
	return ctx, budget
}

// inBudget calls do with a context that ends when the budget of ctx is used up. The
// effects of a commit do not depend on its caller, so that context outlives ctx.
func (s *Lifecycle) inBudget(ctx context.Context, do func(context.Context) error) error {
	_, budget := budgetOf(ctx)
	budget.mu.Lock()
	defer budget.mu.Unlock()
	if budget.left <= 0 {
		return fmt.Errorf("the %s for effects are used up", effectLimit)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget.left)
	defer cancel()
	began := s.now()
	err := do(ctx)
	budget.left -= max(s.now().Sub(began), 0)
	return err
}

// act tries the effects of a commit once, except the actions of a job and those that the
// commit has made. The sweep repeats those that fail, when the record's ActBy has passed.
func (s *Lifecycle) act(ctx context.Context, r run.Run, effects []run.Effect, made map[run.Effect]bool) {
	for _, e := range effects {
		if e.Kind == run.EffectAct || made[e] {
			continue
		}
		err := s.inBudget(ctx, func(ctx context.Context) error { return s.effect(ctx, r, e) })
		if err != nil {
			s.effectFailed.Store(true)
			s.warn(ctx, r, "an effect failed and will be retried: "+string(e.Kind), err)
		}
	}
}

// actForJob carries out the actions of a job that follow a commit. It is the last part
// of the commit, because an address of a user may take as long as ctx allows. A process
// without actions leaves them to the sweep.
func (s *Lifecycle) actForJob(ctx context.Context, r run.Run, effects []run.Effect) {
	if s.actions == nil {
		return
	}
	for _, e := range effects {
		if e.Kind != run.EffectAct {
			continue
		}
		if err := s.effect(ctx, r, e); err != nil {
			s.warn(ctx, r, "an action of the job failed and will be retried: "+string(e.Action), err)
		}
	}
}

// effect acts on one effect. Each is idempotent: a start is by name, a token that
// is gone was completed.
func (s *Lifecycle) effect(ctx context.Context, r run.Run, e run.Effect) error {
	switch e.Kind {
	case run.EffectStart, run.EffectComplete:
		call, _, err := s.callOf(r, e)
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
		if s.actions == nil {
			return errors.New("this function does not act for jobs; the sweep does")
		}
		return s.actions.end(ctx, r, e.Action)
	}
	return fmt.Errorf("unknown effect %q", e.Kind)
}

// movedOn fails a token whose state has no transition to the record's state. The
// state machine then enters Reconciling, which has all of them.
const movedOn = "MovedOn"

// callOf returns the call of the executions that an effect is; false for another effect.
// A token is completed with the execution's next step.
func (s *Lifecycle) callOf(r run.Run, e run.Effect) (c port.ExecutionCall, ok bool, err error) {
	switch e.Kind {
	case run.EffectStart:
		c.Start = e.Execution
		if c.Data, err = json.Marshal(r.Ref()); err != nil {
			err = fmt.Errorf("cannot encode the execution's input: %w", err)
		}
		return c, true, err
	case run.EffectComplete:
		c.Token = e.Token
		route := run.RouteOf(r, s.now())
		if !e.Step.LeadsTo(route) {
			c.Error, c.Cause = movedOn, string(route.Next)
			return c, true, nil
		}
		if c.Data, err = json.Marshal(route); err != nil {
			err = fmt.Errorf("cannot encode the route: %w", err)
		}
		return c, true, err
	case run.EffectStop, run.EffectAct:
	}
	return c, false, nil
}

// committing makes the commit of decisions. It has those of their effects that are calls of
// the executions, if these are in the same store, and made has these effects then.
func (s *Lifecycle) committing(
	ctx context.Context, decisions []run.Decision, commit func(context.Context) error,
) (made map[run.Effect]bool, err error) {
	executions, ok := s.executions.(port.JoinedExecutions)
	if !ok {
		return nil, commit(ctx)
	}
	var effects []run.Effect
	var calls []port.ExecutionCall
	for _, d := range decisions {
		for _, e := range d.Effects {
			if c, ok, err := s.callOf(d.Run, e); ok && err == nil {
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
