package asl

import (
	"strconv"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// stepper runs an execution from a stimulus until it waits again.
type stepper struct {
	*Execution
	env       *Env
	now       int64
	todo      []work
	scheduled []*frame // Tasks to invoke
}

// work is a frame to advance. Either its state has an outcome, or a state is to be entered.
type work struct {
	frame   *frame
	enter   *state // with input, unless nil
	input   any
	outcome outcome
}

func (e *Execution) stepper(env *Env) *stepper {
	return &stepper{Execution: e, env: env, now: env.Now.UnixMilli()}
}

// Start starts an execution with the input. A failure is in the status of the execution.
func (m *Machine) Start(env Env, input any) (*Execution, []Invocation) {
	e := &Execution{machine: m, status: Running, input: input, started: env.Now.UnixMilli(), events: 1}
	x := e.stepper(&env)
	e.root = &frame{execution: e, graph: &m.graph}
	x.push(work{frame: e.root, enter: m.states[m.startAt], input: input})
	x.run()
	return e, x.done()
}

// Tick handles the deadlines up to env.Now.
func (e *Execution) Tick(env Env) []Invocation {
	x := e.stepper(&env)
	for e.status == Running {
		var first *frame
		at, found := x.now, false
		e.deadlines(func(due int64, f *frame) {
			if due <= at && (!found || due < at) {
				first, at, found = f, due, true
			}
		})
		if !found {
			break
		}
		if first == nil {
			x.end(TimedOut, nil, NewFailure(errorTimeout, ""))
			break
		}
		x.fire(first)
		x.run()
	}
	return x.done()
}

// Abort aborts the execution. It returns false if the execution has ended.
func (e *Execution) Abort(env Env, name, cause string) bool {
	if e.status != Running {
		return false
	}
	e.stepper(&env).end(Aborted, nil, NewFailure(name, cause))
	return true
}

func (x *stepper) push(w work) { x.todo = append(x.todo, w) }

// run processes work in order of arrival, so that all branches of a Parallel
// start before the failure of one ends it.
func (x *stepper) run() {
	for len(x.todo) > 0 && x.status == Running {
		w := x.todo[0]
		x.todo = x.todo[1:]
		for more := true; more && x.status == Running && !w.frame.over; {
			if most := x.env.maxEvents(); x.events >= most {
				x.end(Failed, nil, NewFailure(errorRuntime, "The execution reached the maximum number of history events ("+
					strconv.FormatInt(most, 10)+")."))
				break
			}
			w, more = x.advance(w)
		}
	}
	x.todo = nil
}

// done returns the invocations that are still needed.
func (x *stepper) done() []Invocation {
	var list []Invocation
	for _, f := range x.scheduled {
		if f.waiting == waitTask && f.attempt.inFlight && (len(list) == 0 || list[len(list)-1].Attempt != f.attempt.id) {
			list = append(list, f.invocation())
		}
	}
	return list
}

// advance processes one piece of work. If more is true, the returned work must be processed
// next.
func (x *stepper) advance(w work) (next work, more bool) {
	f := w.frame
	if w.enter != nil {
		out, waits := x.enter(f, w.enter, w.input)
		if waits {
			return work{}, false
		}
		if out.failure != nil {
			// Append it to the queue, so that its siblings start first.
			x.push(work{frame: f, outcome: out})
			return work{}, false
		}
		return work{frame: f, outcome: out}, true
	}
	if w.outcome.failure != nil {
		return x.fail(f, w.outcome.failure)
	}
	x.events++ // StateExited
	f.idle()
	if next := f.state.next + w.outcome.chosen; next != "" {
		return work{frame: f, enter: f.graph.states[next], input: w.outcome.output}, true
	}
	return x.endFrame(f, w.outcome)
}

// idle ends the wait of the frame.
func (f *frame) idle() {
	if f.children != nil {
		for _, child := range f.children.active {
			child.stop()
		}
	}
	f.waiting, f.until, f.attempt, f.children, f.context = waitNothing, 0, nil, nil, nil
}

func (f *frame) stop() {
	f.over = true
	f.idle()
}

// endFrame ends the execution or passes the outcome to the parent.
func (x *stepper) endFrame(f *frame, out outcome) (work, bool) {
	if f.parent == nil {
		if out.failure != nil {
			x.end(Failed, nil, out.failure)
		} else {
			x.end(Succeeded, out.output, nil)
		}
		return work{}, false
	}
	parent := f.parent
	f.stop()
	if out.failure != nil {
		return work{frame: parent, outcome: out}, true
	}
	return x.childEnded(parent, f, out.output)
}

func (x *stepper) end(status Status, output any, failed *Failure) {
	x.status, x.output, x.failure = status, output, failed
	if x.root != nil {
		x.root.stop()
		x.root = nil
	}
	x.todo, x.scheduled = nil, nil
}

// enter enters a state. It returns the outcome, or waits = true if the state waits.
func (x *stepper) enter(f *frame, s *state, input any) (out outcome, waits bool) {
	x.entered++
	x.events++
	f.state, f.input = s, input
	f.enteredAt, f.enteredEvent = x.now, x.events
	f.retries, f.used = 0, nil
	f.idle()
	if x.env.Entered != nil {
		x.env.Entered(s.name)
	}
	return x.begin(f)
}

// begin runs the current state, also for each retry.
func (x *stepper) begin(f *frame) (outcome, bool) {
	data, err := f.effective(x.env)
	if err != nil {
		return outcome{failure: f.asFailure(err)}, false
	}
	var (
		waits  bool
		chosen string
	)
	switch f.state.kind {
	case kindPass:
		data, err = x.pass(f, data)
	case kindTask:
		waits, err = true, x.schedule(f, data)
	case kindChoice:
		data, chosen, err = x.choose(f, data)
	case kindWait:
		waits, err = x.wait(f, data)
		if !waits && err == nil {
			data, err = f.leave(x.env, data)
		}
	case kindSucceed:
		data, err = f.leave(x.env, data)
	case kindFail:
		return outcome{failure: x.failState(f)}, false
	case kindParallel, kindMap:
		return x.startChildren(f, data)
	}
	if err != nil {
		return outcome{failure: f.asFailure(err)}, false
	}
	return outcome{output: data, chosen: chosen}, waits
}

func (x *stepper) pass(f *frame, data any) (any, error) {
	result, err := f.fill(x.env, f.state.parameters, data)
	if err != nil {
		return nil, err
	}
	if f.state.hasResult {
		result = f.state.result
	}
	return f.finish(x.env, result)
}

func (x *stepper) choose(f *frame, data any) (output any, next string, err error) {
	next = f.state.otherwise
	for i := range f.state.choices {
		c := &f.state.choices[i]
		ok, err := c.test.holds(f, x.env, data)
		if err != nil {
			return nil, "", err
		}
		if ok {
			next = c.next
			break
		}
	}
	if next == "" {
		return nil, "", f.failure(errorNoChoice, "No choice rule matched and there is no Default.")
	}
	output, err = f.leave(x.env, data)
	return output, next, err
}

func (x *stepper) failState(f *frame) *Failure {
	text := func(e *expression, what string) (*string, error) {
		empty := ""
		if e == nil {
			return &empty, nil
		}
		value, err := e.evaluate(f, x.env, f.input)
		if err != nil {
			return nil, inField(err, what)
		}
		s, ok := value.(string)
		if !ok {
			return nil, f.failure(errorRuntime, "The %s parameter does not reference a string: %s == %s", what, e.text, document.String(value))
		}
		return &s, nil
	}
	code, err := text(f.state.errorText, "ErrorPath")
	if err != nil {
		return f.asFailure(err)
	}
	cause, err := text(f.state.causeText, "CausePath")
	if err != nil {
		return f.asFailure(err)
	}
	return &Failure{Code: code, Cause: cause}
}
