package porttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

func startAgain(e *executionsTest) {
	token := e.start("twice")
	e.ok(e.port.Start(e.ctx, "twice", json.RawMessage(`{}`)))
	e.ok(e.port.Succeed(e.ctx, token, json.RawMessage(goodEnd)))
	e.ends("twice", port.ExecutionSucceeded, "", "")
	e.ok(e.port.Start(e.ctx, "twice", json.RawMessage(`{}`)))
	e.ends("twice", port.ExecutionSucceeded, "", "")
	if n := e.tokenCount("twice"); n != 1 {
		e.Errorf("got %d calls of the function, want 1", n)
	}
}

func startOther(e *executionsTest) {
	token := e.start("taken")
	if err := e.port.Start(e.ctx, "taken", json.RawMessage(`{"other": true}`)); err == nil {
		e.Error("got success for a name that is in use")
	}
	e.ok(e.port.Succeed(e.ctx, token, json.RawMessage(goodEnd)))
	e.ends("taken", port.ExecutionSucceeded, "", "")
	if n := e.tokenCount("taken"); n != 1 {
		e.Errorf("got %d calls of the function, want 1", n)
	}
}

func tokenOnce(e *executionsTest) {
	token := e.start("once")
	e.runs("once")
	e.ok(e.port.Succeed(e.ctx, token, json.RawMessage(goodEnd)))
	e.gone(token)
	e.ends("once", port.ExecutionSucceeded, "", "")
	e.gone(token)
}

func outputPassedOn(e *executionsTest) {
	e.ok(e.port.Succeed(e.ctx, e.start("bad"), json.RawMessage(badEnd)))
	e.ends("bad", port.ExecutionFailed, "Bad", "the output said so")
}

func failure(e *executionsTest) {
	token := e.start("fails")
	e.ok(e.port.Fail(e.ctx, token, "MovedOn", "it is \"elsewhere\""))
	e.ends("fails", port.ExecutionFailed, "MovedOn", "it is \"elsewhere\"")
	e.gone(token)
}

func outputInvalid(e *executionsTest) {
	token := e.start("nonsense")
	for _, output := range []string{``, `{`} {
		if err := e.port.Succeed(e.ctx, token, json.RawMessage(output)); err == nil || errors.Is(err, port.ErrTokenGone) {
			e.Errorf("output %q: got %v, want an error other than ErrTokenGone", output, err)
		}
	}
	e.ok(e.port.Succeed(e.ctx, token, json.RawMessage(goodEnd)))
	e.ends("nonsense", port.ExecutionSucceeded, "", "")
}

func tokenUnknown(e *executionsTest) {
	token := e.start("known")
	e.gone("unknown")
	e.gone(token + "x")
	e.runs("known")
}

func tokensPerExecution(e *executionsTest) {
	one, other := e.start("one"), e.start("other")
	if one == other {
		e.Fatal("got the same token for two executions")
	}
	e.ok(e.port.Fail(e.ctx, one, "Boom", ""))
	e.ends("one", port.ExecutionFailed, "Boom", "")
	e.runs("other")
	e.ok(e.port.Succeed(e.ctx, other, json.RawMessage(goodEnd)))
	e.ends("other", port.ExecutionSucceeded, "", "")
}

func heartbeats(e *executionsTest) {
	token := e.start("alive")
	for range 3 {
		e.h.Pass(15 * time.Second)
		e.ok(e.port.Heartbeat(e.ctx, token))
		e.runs("alive")
	}
	e.ok(e.port.Succeed(e.ctx, token, json.RawMessage(goodEnd)))
	e.ends("alive", port.ExecutionSucceeded, "", "")
}

func heartbeatReopened(e *executionsTest) {
	token := e.start("alive")
	e.h.Pass(15 * time.Second)
	e.ok(e.port.Heartbeat(e.ctx, token))
	e.h.Pass(10 * time.Second)
	e.port = e.h.Reopen()
	e.h.Pass(9 * time.Second)
	e.ok(e.port.Heartbeat(e.ctx, token))
	e.h.Pass(19 * time.Second)
	e.runs("alive")
	e.h.Pass(2 * time.Second)
	e.timesOut("alive")
}

func heartbeatTimeout(e *executionsTest) {
	token := e.start("silent")
	e.h.Pass(15 * time.Second)
	e.ok(e.port.Heartbeat(e.ctx, token))
	e.h.Pass(21 * time.Second)
	e.timesOut("silent")
	e.gone(token)
}

func timeout(e *executionsTest) {
	token := e.start("endless")
	for range 3 {
		e.h.Pass(15 * time.Second)
		e.ok(e.port.Heartbeat(e.ctx, token))
	}
	e.h.Pass(16 * time.Second)
	e.timesOut("endless")
	e.gone(token)
}

func tokenEarly(e *executionsTest) {
	answers := make(chan error, 1)
	e.mu.Lock()
	e.onToken = func(token string) { answers <- e.port.Succeed(e.ctx, token, json.RawMessage(goodEnd)) }
	e.mu.Unlock()
	token := e.start("early")
	if err := <-answers; err != nil {
		e.Errorf("completion before the call returns: got %v", err)
	}
	e.ends("early", port.ExecutionSucceeded, "", "")
	e.gone(token)
}

func stopped(e *executionsTest) {
	token := e.start("stopped")
	e.ok(e.port.Stop(e.ctx, "stopped", "no longer needed"))
	e.ends("stopped", port.ExecutionAborted, "", "no longer needed")
	e.gone(token)
	e.ok(e.port.Stop(e.ctx, "stopped", "again"))
	e.ok(e.port.Start(e.ctx, "stopped", json.RawMessage(`{}`)))
	e.h.Pass(2 * time.Minute)
	e.ends("stopped", port.ExecutionAborted, "", "no longer needed")
}

func stoppedLate(e *executionsTest) {
	e.ok(e.port.Succeed(e.ctx, e.start("over"), json.RawMessage(goodEnd)))
	e.ends("over", port.ExecutionSucceeded, "", "")
	e.ok(e.port.Stop(e.ctx, "over", "too late"))
	e.ends("over", port.ExecutionSucceeded, "", "")
}

// completeRace completes the same token from twenty goroutines, half of them with a different
// output. The first completion must win.
func completeRace(e *executionsTest) {
	token := e.start("contested")
	answers := make([]error, 20)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			output := goodEnd
			if i%2 == 1 {
				output = badEnd
			}
			answers[i] = e.port.Succeed(e.ctx, token, json.RawMessage(output))
		})
	}
	all.Wait()
	winner := -1
	for i, err := range answers {
		switch {
		case err == nil && winner < 0:
			winner = i
		case !errors.Is(err, port.ErrTokenGone):
			e.Errorf("completion %d: got %v", i, err)
		}
	}
	switch {
	case winner < 0:
		e.Error("got no successful completion, want one")
	case winner%2 == 1:
		e.ends("contested", port.ExecutionFailed, "Bad", "")
	default:
		e.ends("contested", port.ExecutionSucceeded, "", "")
	}
}

func startRace(e *executionsTest) {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := e.port.Start(e.ctx, "crowd", json.RawMessage(`{}`)); err != nil {
				e.Error(err)
			}
		})
	}
	all.Wait()
	e.ok(e.port.Succeed(e.ctx, e.token("crowd"), json.RawMessage(goodEnd)))
	e.ends("crowd", port.ExecutionSucceeded, "", "")
	if n := e.tokenCount("crowd"); n != 1 {
		e.Errorf("got %d calls of the function, want 1", n)
	}
}

func stopRace(e *executionsTest) {
	for i := range 10 {
		name := fmt.Sprint("race-", i)
		token := e.start(name)
		var completed, halted error
		var both sync.WaitGroup
		both.Go(func() { completed = e.port.Succeed(e.ctx, token, json.RawMessage(goodEnd)) })
		both.Go(func() { halted = e.port.Stop(e.ctx, name, "stopped") })
		both.Wait()
		e.ok(halted)
		switch {
		case errors.Is(completed, port.ErrTokenGone):
			e.ends(name, port.ExecutionAborted, "", "stopped")
		case completed != nil:
			e.Errorf("completion: got %v", completed)
		case e.end(name).Status == port.ExecutionAborted: // the stop came after the state with the token
			e.ends(name, port.ExecutionAborted, "", "stopped")
		default:
			e.ends(name, port.ExecutionSucceeded, "", "")
		}
	}
}

func reopened(e *executionsTest) {
	waiting, ended := e.start("waiting"), e.start("ended")
	e.ok(e.port.Succeed(e.ctx, ended, json.RawMessage(goodEnd)))
	e.ends("ended", port.ExecutionSucceeded, "", "")
	e.start("halted")
	e.ok(e.port.Stop(e.ctx, "halted", "stopped"))
	e.port = e.h.Reopen()
	e.runs("waiting")
	e.gone(ended)
	e.ends("halted", port.ExecutionAborted, "", "stopped")
	e.ok(e.port.Start(e.ctx, "ended", json.RawMessage(`{}`)))
	e.ends("ended", port.ExecutionSucceeded, "", "")
	e.ok(e.port.Succeed(e.ctx, waiting, json.RawMessage(goodEnd)))
	e.ends("waiting", port.ExecutionSucceeded, "", "")
}
