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

// effectBudget is the time that is left for effects.
type effectBudget struct {
	mu   sync.Mutex
	left time.Duration
}

type effectBudgetKey struct{}

// WithEffectBudget returns a context for one request: its commits share 2 s for their
// effects. Effects beyond that are left to the sweep.
func WithEffectBudget(ctx context.Context) context.Context {
	ctx, _ = budgetOf(ctx)
	return ctx
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

// act tries the effects of a commit once, except the actions of a job. The sweep repeats
// those that fail, when the record's ActBy has passed.
func (s *Lifecycle) act(ctx context.Context, r run.Run, effects []run.Effect) {
	for _, e := range effects {
		if e.Kind == run.EffectAct {
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
	case run.EffectStart:
		input, err := json.Marshal(r.Ref())
		if err != nil {
			return fmt.Errorf("cannot encode the execution's input: %w", err)
		}
		return s.executions.Start(ctx, e.Execution, input)
	case run.EffectStop:
		return s.executions.Stop(ctx, e.Execution, "the run was cancelled")
	case run.EffectAct:
		if s.actions == nil {
			return errors.New("this function does not act for jobs; the sweep does")
		}
		return s.actions.end(ctx, r, e.Action)
	case run.EffectComplete:
		return s.complete(ctx, r, e.Step, e.Token)
	}
	return fmt.Errorf("unknown effect %q", e.Kind)
}

// movedOn fails a token whose state has no transition to the record's state. The
// state machine then enters Reconciling, which has all of them.
const movedOn = "MovedOn"

// complete completes a token with the execution's next step.
func (s *Lifecycle) complete(ctx context.Context, r run.Run, step run.Step, token string) error {
	route := run.RouteOf(r, s.now())
	var err error
	if step.LeadsTo(route) {
		var output []byte
		if output, err = json.Marshal(route); err != nil {
			return fmt.Errorf("cannot encode the route: %w", err)
		}
		err = s.executions.Succeed(ctx, token, output)
	} else {
		err = s.executions.Fail(ctx, token, movedOn, string(route.Next))
	}
	if errors.Is(err, port.ErrTokenGone) {
		return nil
	}
	return err
}
