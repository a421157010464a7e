package asl

import (
	"math"
	"slices"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// fail handles a failure of the frame's state. It retries the state, continues with a catcher,
// or ends the frame.
func (x *stepper) fail(f *frame, failed *Failure) (work, bool) {
	if !f.state.canRetry() || failed.uncaught {
		f.idle()
		return x.endFrame(f, outcome{failure: failed})
	}
	if x.retry(f, failed) {
		return work{}, false
	}
	if c := f.state.catcher(failed); c != nil {
		output, err := f.place(&c.resultPath, failed.document())
		if err == nil {
			x.events++ // StateExited
			f.idle()
			return work{frame: f, enter: f.graph.states[c.next], input: output}, true
		}
		failed = f.asFailure(err)
	}
	f.idle()
	return x.endFrame(f, outcome{failure: failed})
}

// document returns the failure as the input that Catch passes on.
func (f *Failure) document() any {
	object := document.NewObject()
	for _, m := range []struct {
		key  string
		text *string
	}{{"Error", f.Code}, {"Cause", f.Cause}} {
		if m.text == nil {
			object.Set(m.key, nil)
		} else {
			object.Set(m.key, *m.text)
		}
	}
	return object
}

// matches reports whether the failure matches one of the names.
//
// States.ALL matches everything but States.Runtime, including
// States.DataLimitExceeded of a task's result [recorded]. States.TaskFailed
// matches everything but timeouts and States.Runtime.
func (f *Failure) matches(names []string) bool {
	name := f.Name()
	return slices.ContainsFunc(names, func(pattern string) bool {
		switch pattern {
		case name:
			return f.Code != nil
		case errorAll:
			return name != errorRuntime
		case errorTaskFailed:
			return name != errorRuntime && name != errorTimeout && name != errorHeartbeat
		case errorHeartbeat:
			return f.heartbeat
		default:
			return false
		}
	})
}

func (s *state) catcher(failed *Failure) *catcher {
	for i := range s.catch {
		if failed.matches(s.catch[i].errors) {
			return &s.catch[i]
		}
	}
	return nil
}

// retry starts the delay before another try. Only the first matching retrier counts, even if
// its tries are used up.
func (x *stepper) retry(f *frame, failed *Failure) bool {
	for i := range f.state.retry {
		r := &f.state.retry[i]
		if !failed.matches(r.errors) {
			continue
		}
		if f.used == nil {
			f.used = make([]int64, len(f.state.retry))
		}
		if f.used[i] >= r.maxAttempts {
			return false
		}
		f.idle()
		f.waiting, f.until = waitRetry, x.now+x.delay(r, f.used[i])
		f.used[i]++
		f.retries++
		return true
	}
	return false
}

// delay returns the delay before the try after n others, in ms.
func (x *stepper) delay(r *retrier, n int64) int64 {
	longest := r.maxDelay
	if longest == 0 {
		longest = maxDelay
	}
	seconds := min(r.interval*math.Pow(r.backoff, float64(n)), longest)
	if r.jitter {
		seconds *= float64(x.env.Random()>>11) / (1 << 53)
	}
	return int64(math.Ceil(seconds * 1000))
}
