package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/local/twin/asl/document"
	"github.com/sortie-dev/sortie/shared/port"
)

// ErrNameTaken is returned by Start for a name that was used with another input
// within 90 days.
var ErrNameTaken = errors.New("the name belongs to another execution")

// retention is how long a name stays taken and Describe knows it (AWS: 90
// days).
const retention = 90 * 24 * time.Hour

var names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// Start implements port.Executions. It returns ErrNameTaken if the name was
// used with another input.
func (e *Engine) Start(ctx context.Context, name string, input json.RawMessage) error {
	if !names.MatchString(name) {
		return fmt.Errorf("cannot start the execution: %q is not 1 to 80 letters, digits, '-' and '_'", name)
	}
	value, err := object(input)
	if err != nil {
		return fmt.Errorf("cannot start the execution %s: its input %w", name, err)
	}
	e.mu.Lock()
	e.last++
	en := &entry{id: e.last, name: name}
	e.mu.Unlock()
	en.mu.Lock()
	defer en.mu.Unlock()
	env, entered := e.env(en)
	var invocations []asl.Invocation
	en.execution, invocations = e.machine.machine.Start(env, value)
	r := e.row(en)
	r.definition, r.input = e.machine.digest, digest(document.Append(nil, value))
	taken, err := e.store.insert(ctx, r, milli(e.config.Clock.Now().Add(-retention)))
	switch {
	case err != nil:
		return fmt.Errorf("cannot start the execution %s: %w", name, err)
	case taken != nil && taken.input != r.input:
		return fmt.Errorf("cannot start the execution %s: %w", name, ErrNameTaken)
	case taken != nil:
		return nil
	}
	e.show(ctx, en, r, invocations, *entered)
	return nil
}

// object parses a JSON object of limited size.
func object(text json.RawMessage) (any, error) {
	if len(text) > asl.MaxData {
		return nil, fmt.Errorf("is larger than %d bytes", asl.MaxData)
	}
	value, err := document.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if _, ok := value.(*document.Object); !ok {
		return nil, errors.New("is not an object")
	}
	return value, nil
}

// Succeed implements port.Executions.
func (e *Engine) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	value, err := object(output)
	if err != nil {
		return fmt.Errorf("cannot complete the token: its output %w", err)
	}
	return e.complete(ctx, token, func(x *asl.Execution, env asl.Env) ([]asl.Invocation, bool) {
		return x.Succeed(env, token, value)
	})
}

// Fail implements port.Executions.
func (e *Engine) Fail(ctx context.Context, token, name, cause string) error {
	if strings.HasPrefix(name, "States.") {
		return fmt.Errorf("cannot fail the token: error name %s is reserved for Step Functions", name)
	}
	return e.complete(ctx, token, func(x *asl.Execution, env asl.Env) ([]asl.Invocation, bool) {
		return x.Fail(env, token, asl.NewFailure(name, cause))
	})
}

// Heartbeat implements port.Executions. It only extends a deadline in memory;
// after a restart the clock starts again.
func (e *Engine) Heartbeat(ctx context.Context, token string) error {
	en := e.holder(token)
	if en == nil {
		return port.ErrTokenGone
	}
	en.mu.Lock()
	defer en.mu.Unlock()
	if !en.listens && !en.over {
		if _, err := e.ready(ctx, en); err != nil {
			return err
		}
	}
	if en.over || !en.pulse.Heartbeat(e.config.Clock.Now(), token) {
		return port.ErrTokenGone
	}
	if due, ok := en.pulse.Deadline(); ok {
		e.mu.Lock()
		e.timers.set(en, milli(due))
		e.mu.Unlock()
	}
	return nil
}

func (e *Engine) complete(ctx context.Context, token string, apply stimulus) error {
	en := e.holder(token)
	if en == nil {
		return port.ErrTokenGone
	}
	ok, err := e.change(ctx, en, apply)
	if err == nil && !ok {
		return port.ErrTokenGone
	}
	return err
}

// Stop implements port.Executions.
func (e *Engine) Stop(ctx context.Context, name, cause string) error {
	r, err := e.store.byName(ctx, name)
	if errors.Is(err, errNoRow) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot stop the execution %s: %w", name, err)
	}
	e.mu.Lock()
	en := e.entries[r.id]
	e.mu.Unlock()
	if en == nil {
		return nil
	}
	_, err = e.change(ctx, en, func(x *asl.Execution, env asl.Env) ([]asl.Invocation, bool) {
		return nil, x.Abort(env, "", cause)
	})
	return err
}

// Describe implements port.Executions.
func (e *Engine) Describe(ctx context.Context, name string) (port.Execution, error) {
	r, err := e.store.byName(ctx, name)
	if errors.Is(err, errNoRow) || err == nil && r.ended != 0 && r.ended < milli(e.config.Clock.Now().Add(-retention)) {
		return port.Execution{}, port.ErrNotFound
	}
	if err != nil {
		return port.Execution{}, fmt.Errorf("cannot describe the execution %s: %w", name, err)
	}
	return port.Execution{Name: name, Status: r.status, Error: r.code, Cause: r.cause, Transitions: int(r.entered)}, nil
}
