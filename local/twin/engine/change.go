package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/shared/port"
)

// errUnreadable is the error for a stored execution that this program cannot
// resume.
var errUnreadable = errors.New("unreadable execution")

// stimulus changes an execution and returns the calls to make. It returns false if it changed
// nothing.
type stimulus func(*asl.Execution, asl.Env) ([]asl.Invocation, bool)

// change applies the stimulus, stores the result, and only then makes it
// visible: deadlines and invocations. It returns false if the stimulus changed
// nothing or the execution has ended. After an error the execution is
// unchanged, unless the process crashed while the store wrote.
func (e *Engine) change(ctx context.Context, en *entry, apply stimulus) (bool, error) {
	return e.changeOr(ctx, en, apply, func(int64) bool { return false })
}

// changeOr is like change, but does not store the result immediately if later returns true. The
// argument of later is the number of states entered before the stimulus.
func (e *Engine) changeOr(ctx context.Context, en *entry, apply stimulus, later func(entered int64) bool) (bool, error) {
	en.mu.Lock()
	defer en.mu.Unlock()
	if en.over {
		return false, nil
	}
	if ok, err := e.ready(ctx, en); !ok {
		return false, err
	}
	former := e.unsaved(en)
	env, entered := e.env(en)
	before := en.execution.Entered()
	invocations, ok := apply(en.execution, env)
	if !ok {
		return false, nil
	}
	if later(before) {
		r := e.summary(en)
		e.saveLater(en, r)
		e.show(ctx, en, r, invocations, *entered)
		return true, nil
	}
	r := e.row(en)
	if err := e.store.update(ctx, r); err != nil {
		en.restore(former)
		return false, fmt.Errorf("cannot store the execution: %w", err)
	}
	en.later = nil
	e.show(ctx, en, r, invocations, *entered)
	return true, nil
}

// resume repeats the invocations that were in flight.
func (e *Engine) resume(ctx context.Context, en *entry) error {
	_, err := e.change(ctx, en, func(x *asl.Execution, env asl.Env) ([]asl.Invocation, bool) {
		if x.Resume(env) {
			return x.InFlight(), true
		}
		// Nothing has to be stored.
		e.mu.Lock()
		defer e.mu.Unlock()
		e.schedule(en, x.InFlight())
		return nil, false
	})
	return err
}

// schedule queues invocations. The caller holds e.mu.
func (e *Engine) schedule(en *entry, invocations []asl.Invocation) {
	for _, each := range invocations {
		e.calls = append(e.calls, call{entry: en, invocation: each})
	}
}

// ready loads the execution. It ends an execution that cannot be read and
// returns false.
func (e *Engine) ready(ctx context.Context, en *entry) (bool, error) {
	err := e.load(ctx, en)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errUnreadable):
		return false, e.giveUp(ctx, en, err)
	}
	return false, fmt.Errorf("cannot read the execution: %w", err)
}

// load reads the execution unless it is in memory, and applies the heartbeats received since.
// The heartbeats of an earlier engine are unknown, so load restarts every heartbeat clock that
// is older than this engine.
func (e *Engine) load(ctx context.Context, en *entry) error {
	if en.execution == nil {
		if err := e.read(ctx, en); err != nil {
			return err
		}
		en.execution.RestartHeartbeats(e.began)
		e.mu.Lock()
		e.remember(en)
		e.mu.Unlock()
	}
	if !en.listens {
		en.pulse, en.listens = en.execution.Pulse(), true
	}
	en.execution.ApplyHeartbeats(en.pulse)
	return nil
}

func (e *Engine) read(ctx context.Context, en *entry) error {
	r := en.later
	if r == nil {
		var err error
		if r, err = e.store.byID(ctx, en.id); err != nil {
			return err
		}
	}
	en.name, en.definition = r.name, r.definition
	d, err := e.definition(ctx, r.definition)
	if err != nil {
		return err
	}
	if en.execution, err = d.machine.Decode(r.document); err != nil {
		return errors.Join(errUnreadable, err)
	}
	return nil
}

// giveUp fails an execution that cannot be read, because it would never end
// otherwise.
func (e *Engine) giveUp(ctx context.Context, en *entry, reason error) error {
	r := &row{
		id: en.id, status: port.ExecutionFailed, ended: milli(e.config.Clock.Now()),
		code: "States.Runtime", cause: "The execution was stored by a program that this one does not understand.",
	}
	if err := e.store.update(ctx, r); err != nil {
		return fmt.Errorf("cannot store the execution: %w", err)
	}
	en.later = nil
	e.config.Log.ErrorContext(ctx, "an execution cannot be resumed", "execution", en.name, "error", reason)
	e.show(ctx, en, r, nil, nil)
	return nil
}

func (e *Engine) env(en *entry) (asl.Env, *[]string) {
	entered := &[]string{}
	env := asl.Env{
		Now: e.config.Clock.Now(), Random: e.config.Random, Identity: e.identity(en.name),
		MaxEvents: int64(e.config.MaxEvents),
		Token: func(attempt int64) string {
			return fmt.Sprintf("%d.%d.%016x%016x", en.id, attempt, e.config.Random(), e.config.Random())
		},
	}
	if e.config.Entered != nil {
		env.Entered = func(state string) { *entered = append(*entered, state) }
	}
	return env, entered
}

func (e *Engine) identity(name string) asl.Identity {
	const states = "arn:aws:states:local:000000000000:"
	return asl.Identity{
		ID: states + "execution:" + e.config.Name + ":" + name, Name: name,
		RoleARN:   "arn:aws:iam::000000000000:role/" + e.config.Name,
		MachineID: states + "stateMachine:" + e.config.Name, MachineName: e.config.Name,
	}
}

// row returns the execution in its stored form.
func (e *Engine) row(en *entry) *row {
	r := e.summary(en)
	if r.ended == 0 {
		r.document = en.execution.Append(make([]byte, 0, 1024))
	}
	return r
}

// summary returns the row of the execution without its document.
func (e *Engine) summary(en *entry) *row {
	x := en.execution
	r := &row{id: en.id, name: en.name, definition: en.definition, status: port.ExecutionStatus(x.Status()), entered: x.Entered()}
	if x.Status() != asl.Running {
		r.ended = milli(e.config.Clock.Now())
		if failed := x.Failure(); failed != nil {
			r.code = failed.Name()
			if failed.Cause != nil {
				r.cause = *failed.Cause
			}
		}
		return r
	}
	if due, ok := x.Deadline(); ok {
		r.due = milli(due)
	}
	r.calls = x.Busy()
	return r
}

// show publishes a change of the execution in memory: its deadline, pulse and invocations. It
// then reports the entered states. The caller holds en.mu.
func (e *Engine) show(ctx context.Context, en *entry, r *row, invocations []asl.Invocation, entered []string) {
	e.mu.Lock()
	if r.ended != 0 {
		en.over, en.execution, en.pulse = true, nil, asl.Pulse{}
		e.timers.set(en, 0)
		if en.later == nil {
			delete(e.entries, en.id)
		} else {
			e.ending++
		}
	} else {
		en.pulse, en.listens = en.execution.Pulse(), true
		e.entries[en.id] = en
		e.timers.set(en, r.due)
		e.schedule(en, invocations)
		if !r.calls {
			e.remember(en)
		}
	}
	e.mu.Unlock()
	e.nudge()
	for _, state := range entered {
		e.config.Entered(en.name, state)
	}
	switch r.status {
	case port.ExecutionRunning:
	case port.ExecutionSucceeded, port.ExecutionAborted:
		e.config.Log.DebugContext(ctx, "execution ended", "execution", en.name, "status", string(r.status))
	default:
		e.config.Log.WarnContext(ctx, "execution ended", "execution", en.name, "status", string(r.status), "error", r.code)
	}
}

// remember keeps the execution in memory and drops the least recently used one.
// The caller holds e.mu and en.mu.
func (e *Engine) remember(en *entry) {
	old := e.recent[e.turn]
	e.recent[e.turn] = en
	e.turn = (e.turn + 1) % len(e.recent)
	if old == nil || old == en || !old.mu.TryLock() {
		return
	}
	if old.execution != nil && !old.execution.Busy() {
		old.forget()
	}
	old.mu.Unlock()
}

// forget drops the execution from memory.
func (en *entry) forget() {
	if en.later != nil && en.execution != nil {
		en.later.document = en.execution.Append(nil)
	}
	en.execution, en.name, en.definition = nil, "", ""
}

// ended reports whether the execution has ended.
func (en *entry) ended() bool {
	en.mu.Lock()
	defer en.mu.Unlock()
	return en.over
}

// nudge wakes Run.
func (e *Engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// holder returns the entry of the token, or nil.
func (e *Engine) holder(token string) *entry {
	prefix, _, _ := strings.Cut(token, ".")
	id, err := strconv.ParseInt(prefix, 10, 64)
	if err != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.entries[id]
}
