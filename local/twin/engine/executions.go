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
	en, r, invocations, entered, err := e.begin(name, input)
	if err != nil {
		return err
	}
	en.mu.Lock()
	defer en.mu.Unlock()
	taken, err := e.store.insert(ctx, r, e.forgotten())
	switch {
	case err != nil:
		return fmt.Errorf("cannot start the execution %s: %w", name, err)
	case taken != nil && taken.input != r.input:
		return fmt.Errorf("cannot start the execution %s: %w", name, ErrNameTaken)
	case taken != nil:
		return nil
	}
	e.show(ctx, en, r, invocations, entered)
	return nil
}

// begin returns a new execution with its first invocations and the states that it has entered.
// It stores nothing.
func (e *Engine) begin(name string, input json.RawMessage) (en *entry, r *row, invocations []asl.Invocation, entered []string, err error) {
	if !names.MatchString(name) {
		return nil, nil, nil, nil, fmt.Errorf("cannot start the execution: %q is not 1 to 80 letters, digits, '-' and '_'", name)
	}
	value, err := object(input)
	if err != nil {
		return nil, nil, nil, nil, fmt.Errorf("cannot start the execution %s: its input %w", name, err)
	}
	e.mu.Lock()
	e.last++
	en = &entry{id: e.last, name: name, definition: e.machine.digest}
	e.mu.Unlock()
	env, states := e.env(en)
	en.execution, invocations = e.machine.machine.Start(env, value)
	r = e.row(en)
	r.input = digest(document.Append(nil, value))
	return en, r, invocations, *states, nil
}

// forgotten returns a time in ms. The name of an execution that ended before it is free.
func (e *Engine) forgotten() int64 { return milli(e.config.Clock.Now().Add(-retention)) }

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
	return e.complete(ctx, port.ExecutionCall{Token: token, Data: output})
}

// Fail implements port.Executions.
func (e *Engine) Fail(ctx context.Context, token, name, cause string) error {
	return e.complete(ctx, port.ExecutionCall{Token: token, Error: name, Cause: cause})
}

// Heartbeat implements port.Executions. It only extends a deadline in memory. After a restart
// the heartbeat clock starts again.
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

func (e *Engine) complete(ctx context.Context, c port.ExecutionCall) error {
	apply, err := completion(c)
	if err != nil {
		return err
	}
	en := e.holder(c.Token)
	if en == nil {
		return port.ErrTokenGone
	}
	ok, err := e.change(ctx, en, apply)
	if err == nil && !ok {
		return port.ErrTokenGone
	}
	return err
}

// completion returns the stimulus that completes the token of the call.
func completion(c port.ExecutionCall) (stimulus, error) {
	if c.Error != "" {
		if strings.HasPrefix(c.Error, "States.") {
			return nil, fmt.Errorf("cannot fail the token: error name %s is reserved for Step Functions", c.Error)
		}
		return func(x *asl.Execution, env asl.Env) ([]asl.Invocation, bool) {
			return x.Fail(env, c.Token, asl.NewFailure(c.Error, c.Cause))
		}, nil
	}
	value, err := object(c.Data)
	if err != nil {
		return nil, fmt.Errorf("cannot complete the token: its output %w", err)
	}
	return func(x *asl.Execution, env asl.Env) ([]asl.Invocation, bool) {
		return x.Succeed(env, c.Token, value)
	}, nil
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
	r, err := e.byName(ctx, name)
	if errors.Is(err, errNoRow) || err == nil && r.ended != 0 && r.ended < e.forgotten() {
		return port.Execution{}, port.ErrNotFound
	}
	if err != nil {
		return port.Execution{}, fmt.Errorf("cannot describe the execution %s: %w", name, err)
	}
	return port.Execution{Name: name, Status: r.status, Error: r.code, Cause: r.cause, Transitions: int(r.entered)}, nil
}

// byName returns the newest row of an execution without its document.
func (e *Engine) byName(ctx context.Context, name string) (*row, error) {
	r, err := e.store.byName(ctx, name)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	en := e.entries[r.id]
	e.mu.Unlock()
	if en == nil {
		return r, nil
	}
	en.mu.Lock()
	defer en.mu.Unlock()
	if en.later != nil {
		return en.later, nil
	}
	return r, nil
}
