package asl

import (
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// maxWait limits the seconds of a Wait. AWS refuses more than 2^31-1
// [recorded].
const maxWait = 1<<31 - 1

// wait starts a Wait. It returns false if the time of the Wait has passed.
func (x *stepper) wait(f *frame, data any) (waits bool, err error) {
	s := f.state
	switch {
	case s.timestamp != "":
		at, _ := parseTimestamp(s.timestamp, true)
		f.until = at.UnixMilli()
	case s.timestampPath != nil:
		value, err := f.find(x.env, *s.timestampPath, data)
		if err != nil {
			return false, f.failure(errorRuntime, "Invalid path '%s' : %s", s.timestampPath, err)
		}
		text, isText := value.(string)
		at, ok := parseTimestamp(text, true)
		if !ok {
			if !isText {
				text = document.String(value)
			}
			return false, f.failure(errorRuntime, "The TimestampPath parameter does not reference a valid "+
				"ISO-8601 extended offset date-time format string: %s == %s", s.timestampPath, text)
		}
		f.until = ceilMilli(at)
	default:
		ms, err := f.seconds(x.env, &s.seconds, "SecondsPath", data)
		if err != nil {
			return false, err
		}
		f.until = x.now + ms
	}
	if f.until-x.now > maxWait*1000 {
		return false, f.failure(errorRuntime, "Wait state delay is too long.")
	}
	if f.until <= x.now {
		return false, nil
	}
	f.waiting = waitTime
	return true, nil
}

func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// schedule starts a try of a Task.
func (x *stepper) schedule(f *frame, data any) error {
	s := f.state
	x.attempts++
	a := &attempt{id: x.attempts, inFlight: true}
	if s.callback || s.job {
		a.token = x.token(a.id)
	}
	f.attempt, f.context = a, nil
	timeout := int64(maxSeconds) * 1000
	var err error
	if s.timeout.set {
		if timeout, err = f.seconds(x.env, &s.timeout, "TimeoutSecondsPath", data); err != nil {
			return err
		}
		if timeout == 0 {
			return f.failure(errorRuntime, "The TimeoutSecondsPath parameter does not reference a positive value")
		}
	}
	if s.heartbeat.set {
		if a.heartbeat, err = f.seconds(x.env, &s.heartbeat, "HeartbeatSecondsPath", data); err != nil {
			return err
		}
		if a.heartbeat == 0 {
			return f.failure(errorRuntime, "The HeartbeatSecondsPath parameter does not reference a positive value")
		}
		a.lateAt = x.now + a.heartbeat
	}
	a.timeoutAt = x.now + timeout
	if a.payload, err = f.fill(x.env, s.parameters, data); err != nil {
		return err
	}
	if !document.Fits(a.payload, MaxData) {
		return f.failure(errorDataLimit, "The state/task '%s' has an input with a size exceeding the maximum number of bytes service limit.", s.name)
	}
	x.events += 2 // TaskScheduled, TaskStarted
	f.waiting = waitTask
	x.scheduled = append(x.scheduled, f)
	return nil
}

func (x *stepper) token(id int64) string {
	if x.env.Token != nil {
		return x.env.Token(id)
	}
	return strconv.FormatUint(x.env.Random(), 36) + strconv.FormatUint(x.env.Random(), 36)
}

// settle ends the current try of the frame.
func (x *stepper) settle(f *frame, out outcome) {
	x.events++ // TaskSucceeded, TaskFailed or TaskTimedOut
	if out.failure == nil {
		out = x.accept(f, out.output)
	}
	x.push(work{frame: f, outcome: out})
}

// accept processes a task's result.
func (x *stepper) accept(f *frame, result any) outcome {
	if !document.Fits(result, MaxData) {
		return outcome{failure: NewFailure(errorDataLimit, "The state/task '"+f.state.resource+
			"' returned a result with a size exceeding the maximum number of bytes service limit.")}
	}
	output, err := f.finish(x.env, result)
	if err != nil {
		return outcome{failure: f.asFailure(err)}
	}
	return outcome{output: output}
}

// fire handles the expired deadline of the frame.
func (x *stepper) fire(f *frame) {
	switch f.waiting {
	case waitNothing, waitChildren:
	case waitTime:
		out := outcome{}
		data, err := f.effective(x.env)
		if err == nil {
			out.output, err = f.leave(x.env, data)
		}
		if err != nil {
			out.failure = f.asFailure(err)
		}
		x.push(work{frame: f, outcome: out})
	case waitRetry:
		f.idle()
		if out, waits := x.begin(f); !waits {
			x.push(work{frame: f, outcome: out})
		}
	case waitTask:
		a := f.attempt
		if a.early != nil {
			x.settle(f, *a.early)
			return
		}
		late := a.lateAt != 0 && a.lateAt < a.timeoutAt
		failed := NewFailure(errorTimeout, "")
		failed.heartbeat = late
		x.settle(f, outcome{failure: failed})
	}
}

// Returned applies the result of an invocation. A callback state still waits for its token,
// unless the token was completed before. It returns false if the execution no longer waits for
// the attempt.
func (e *Execution) Returned(env Env, attempt int64, output any) ([]Invocation, bool) {
	return e.settled(env, attempt, outcome{output: output})
}

// Failed applies the failure of an invocation. A token that was completed before takes
// precedence. It returns false in the same cases as Returned.
func (e *Execution) Failed(env Env, attempt int64, failed *Failure) ([]Invocation, bool) {
	return e.settled(env, attempt, outcome{failure: failed})
}

func (e *Execution) settled(env Env, id int64, out outcome) ([]Invocation, bool) {
	f := e.waitingFor(func(a *attempt) bool { return a.id == id && a.inFlight })
	if f == nil {
		return nil, false
	}
	x := e.stepper(&env)
	a := f.attempt
	switch {
	case a.early != nil:
		out = *a.early
	case f.state.callback && out.failure == nil:
		x.events++ // TaskSubmitted
		a.inFlight, a.payload = false, nil
		return nil, true
	}
	x.settle(f, out)
	x.run()
	return x.done(), true
}

// Succeed completes the state of the token with output. While the invocation has not returned,
// it stores the output until then. It returns false if the execution does not wait for the
// token, because it was completed, has timed out, or is unknown.
func (e *Execution) Succeed(env Env, token string, output any) ([]Invocation, bool) {
	return e.complete(env, token, outcome{output: output})
}

// Fail completes the state of the token with a failure, like Succeed.
func (e *Execution) Fail(env Env, token string, failed *Failure) ([]Invocation, bool) {
	return e.complete(env, token, outcome{failure: failed})
}

func (e *Execution) complete(env Env, token string, out outcome) ([]Invocation, bool) {
	f := e.holder(token)
	if f == nil {
		return nil, false
	}
	if f.attempt.inFlight {
		f.attempt.early = &out
		f.attempt.lateAt = 0
		return nil, true
	}
	x := e.stepper(&env)
	x.settle(f, out)
	x.run()
	return x.done(), true
}

func (e *Execution) holder(token string) *frame {
	return e.waitingFor(func(a *attempt) bool { return a.awaits() && a.token == token })
}

// awaits reports whether the token of the try can still be completed.
func (a *attempt) awaits() bool { return a.token != "" && a.early == nil }

// Resume advances the states whose token was completed while their invocation was in flight,
// because a crash loses the result of the invocation. It returns false if there are no such
// states. In both cases the caller must then repeat the invocations that InFlight returns.
func (e *Execution) Resume(env Env) bool {
	x := e.stepper(&env)
	e.visit(func(f *frame) {
		if f.waiting == waitTask && f.attempt.early != nil {
			x.settle(f, *f.attempt.early)
		}
	})
	changed := len(x.todo) > 0
	x.run()
	return changed
}
