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

// effectLimit bounds one try at the effects of a commit. They are no longer the
// business of whoever caused them, so they outlive that caller's context.
const effectLimit = 20 * time.Second

// act tries the effects of a commit once. What fails is done again by the
// sweep, when the record's time to act is over.
func (s *Service) act(ctx context.Context, r run.Run, effects []run.Effect) {
	if len(effects) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), effectLimit)
	defer cancel()
	for _, e := range effects {
		if err := s.effect(ctx, r, e); err != nil {
			s.warn(ctx, r, "an effect failed and will be repeated: "+string(e.Kind), err)
		}
	}
}

// effect does one effect. Each may be repeated: a start is by name, a token
// that is gone was completed.
func (s *Service) effect(ctx context.Context, r run.Run, e run.Effect) error {
	switch e.Kind {
	case run.EffectStart:
		input, err := json.Marshal(r.Ref())
		if err != nil {
			return fmt.Errorf("cannot write the execution's input: %w", err)
		}
		return s.ports.Executions.Start(ctx, e.Execution, input)
	case run.EffectStop:
		return s.ports.Executions.Stop(ctx, e.Execution, "the run was cancelled")
	case run.EffectComplete:
		return s.complete(ctx, r, e.Step, e.Token)
	}
	return fmt.Errorf("there is no effect %q", e.Kind)
}

// movedOn is the error of a token whose state does not lead to where the record
// stands; it leads to Reconciling, which does.
const movedOn = "MovedOn"

// complete completes a token of a step with where the execution has to go.
func (s *Service) complete(ctx context.Context, r run.Run, step run.Step, token string) error {
	route := run.RouteOf(r, s.now())
	var err error
	if step.LeadsTo(route) {
		var output []byte
		if output, err = json.Marshal(route); err != nil {
			return fmt.Errorf("cannot write the route: %w", err)
		}
		err = s.ports.Executions.Succeed(ctx, token, output)
	} else {
		err = s.ports.Executions.Fail(ctx, token, movedOn, string(route.Next))
	}
	if errors.Is(err, port.ErrTokenGone) {
		return nil
	}
	return err
}
