package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.JoinedExecutions = (*Engine)(nil)

// callerKey is the context key of the entry whose invocation runs in that context.
type callerKey struct{}

// joint writes changes of executions in a commit of the store. It implements sqlite.Joint.
type joint struct {
	engine    *Engine
	caller    *entry // nil if no invocation makes the commit
	calls     []port.ExecutionCall
	made      []bool
	steps     []*jointStep // their entries are locked
	committed bool
}

// jointStep is the change of one execution.
type jointStep struct {
	entry       *entry
	former      *row // the change that was not stored before, or nil
	row         *row
	start       bool  // the row is new
	calls       []int // indexes of calls
	taken       bool  // the name belongs to another execution
	invocations []asl.Invocation
	entered     []string
}

// Join implements port.JoinedExecutions.
func (e *Engine) Join(ctx context.Context, calls ...port.ExecutionCall) (context.Context, func() []bool) {
	j := &joint{engine: e, calls: calls, made: make([]bool, len(calls))}
	j.caller, _ = ctx.Value(callerKey{}).(*entry)
	if _, stored := e.store.(rows); !stored || j.caller == nil && len(calls) == 0 {
		return ctx, func() []bool { return j.made }
	}
	return sqlite.Join(ctx, j), func() []bool { return j.finish(ctx) }
}

// Begin applies the calls to their executions, which stay locked until finish. It skips calls
// that cannot be joined.
func (j *joint) Begin(ctx context.Context) {
	for i, c := range j.calls {
		switch en := j.engine.holder(c.Token); {
		case c.Start != "":
			j.start(i, c)
		case en != nil:
			j.stepOf(en).calls = append(j.stepOf(en).calls, i)
		default:
			j.made[i] = true // the token is gone
		}
	}
	if j.caller != nil {
		j.stepOf(j.caller)
	}
	// All callers lock entries in this order.
	slices.SortFunc(j.steps, func(a, b *jointStep) int { return cmp.Compare(a.entry.id, b.entry.id) })
	for _, s := range j.steps {
		s.entry.mu.Lock()
	}
	j.steps = slices.DeleteFunc(j.steps, func(s *jointStep) bool {
		needed := s.start || j.apply(ctx, s)
		if !needed {
			s.entry.mu.Unlock()
		}
		return !needed
	})
}

// stepOf returns the step of an execution.
func (j *joint) stepOf(en *entry) *jointStep {
	for _, s := range j.steps {
		if s.entry == en {
			return s
		}
	}
	s := &jointStep{entry: en}
	j.steps = append(j.steps, s)
	return s
}

// start adds a step that starts an execution.
func (j *joint) start(i int, c port.ExecutionCall) {
	en, r, invocations, entered, err := j.engine.begin(c.Start, c.Data)
	if err == nil {
		j.steps = append(j.steps, &jointStep{entry: en, row: r, start: true, calls: []int{i}, invocations: invocations, entered: entered})
	}
}

// apply applies the calls of a step. It reports whether the execution must be stored.
func (j *joint) apply(ctx context.Context, s *jointStep) bool {
	e, en := j.engine, s.entry
	if en.over {
		for _, i := range s.calls {
			j.made[i] = true // the token is gone
		}
		return false
	}
	if len(s.calls) == 0 && en.later == nil {
		return false
	}
	if ok, err := e.ready(ctx, en); err != nil || !ok {
		return false
	}
	s.former = e.unsaved(en)
	env, entered := e.env(en)
	changed := false
	for _, i := range s.calls {
		c := j.calls[i]
		stimulus, err := completion(c)
		if err != nil {
			continue
		}
		invocations, ok := stimulus(en.execution, env)
		j.made[i] = true
		changed = changed || ok
		s.invocations = append(s.invocations, invocations...)
	}
	s.entered = *entered
	if !changed && s.former == nil {
		return false
	}
	s.row = e.row(en)
	return true
}

// Write writes the executions in the transaction of the commit.
func (j *joint) Write(tx *sqlite.Tx) error {
	for _, s := range j.steps {
		if !s.start {
			if err := updateRows(tx, s.row); err != nil {
				return err
			}
			continue
		}
		taken, err := insertRow(tx, s.row, j.engine.forgotten())
		if err != nil {
			return err
		}
		s.taken = taken != nil
	}
	return nil
}

// End records whether the transaction was committed.
func (j *joint) End(committed bool) { j.committed = committed }

// finish publishes the changes if they were committed, and otherwise restores the executions.
// It returns which calls were made.
func (j *joint) finish(ctx context.Context) []bool {
	for _, s := range j.steps {
		en := s.entry
		switch {
		case s.taken:
		case j.committed:
			en.later = nil
			j.engine.show(ctx, en, s.row, s.invocations, s.entered)
		default:
			en.restore(s.former)
		}
		if s.start {
			j.made[s.calls[0]] = j.committed && !s.taken
		}
		en.mu.Unlock()
	}
	if !j.committed {
		clear(j.made)
	}
	return j.made
}
