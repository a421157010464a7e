package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// effectLimit bounds one try at the effects of a commit. The effects do not
// depend on the caller of the commit, so they outlive its context.
const effectLimit = 20 * time.Second

// act tries the effects of a commit once. The sweep repeats those that fail, when
// the record's ActBy has passed.
func (s *Lifecycle) act(ctx context.Context, r run.Run, effects []run.Effect) {
	if len(effects) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), effectLimit)
	defer cancel()
	for _, e := range effects {
		if err := s.effect(ctx, r, e); err != nil {
			s.warn(ctx, r, "an effect failed and will be retried: "+string(e.Kind), err)
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
