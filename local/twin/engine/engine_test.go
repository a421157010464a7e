package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestStartIsIdempotent(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"memory", "database"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := setup(t, `{"StartAt":"A","States":{"A":{"Type":"Wait","Seconds":60,"End":true}}}`)
			if kind == "database" {
				w.store, _ = database(t)
				w.open()
			}
			w.start("run", `{"a":1}`)
			w.start("run", `{ "a" : 1 }`)
			if err := w.engine.Start(t.Context(), "run", json.RawMessage(`{"a":2}`)); !errors.Is(err, ErrNameTaken) {
				t.Errorf("another input: got %v", err)
			}
			if w.engine.Running() != 1 {
				t.Errorf("got %d running executions", w.engine.Running())
			}
			w.pass(time.Minute)
			w.start("run", `{"a":1}`)
			w.standing("run", port.ExecutionSucceeded)

			w.clock.Advance(91 * 24 * time.Hour)
			if _, err := w.engine.Describe(t.Context(), "run"); !errors.Is(err, port.ErrNotFound) {
				t.Errorf("after 90 days: got %v", err)
			}
			w.start("run", `{"a":2}`)
			w.standing("run", port.ExecutionRunning)
			if n, err := w.engine.Purge(t.Context(), w.clock.Now()); n != 0 || err != nil {
				t.Errorf("purged %d, %v", n, err)
			}
		})
	}
}

func TestBadStarts(t *testing.T) {
	t.Parallel()
	w := setup(t, life)
	for _, row := range []struct{ name, input string }{
		{"", `{}`},
		{"a b", `{}`},
		{strings.Repeat("n", 81), `{}`},
		{"a", `[]`},
		{"a", `{`},
		{"a", ``},
		{"a", `{"a":"` + strings.Repeat("x", 262_144) + `"}`},
	} {
		if err := w.engine.Start(t.Context(), row.name, json.RawMessage(row.input)); err == nil {
			t.Errorf("%.20q with %.20q: got no error", row.name, row.input)
		}
	}
	if w.engine.Running() != 0 {
		t.Error("got a running execution, want none")
	}
}

func TestResultsOfInvocations(t *testing.T) {
	t.Parallel()
	w := setup(t, `{"StartAt":"A","States":{
		"A":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload":{"x.$":"$.x"}},"ResultPath":"$.r",
			"Retry":[{"ErrorEquals":["Lambda.Unknown"],"IntervalSeconds":1,"MaxAttempts":2},{"ErrorEquals":["Busy"],"IntervalSeconds":1}],"Next":"B"},
		"B":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"g","Payload.$":"$.r"},"End":true}}}`)
	answers := []func() (json.RawMessage, error){
		func() (json.RawMessage, error) { return nil, &InvokeError{Name: "Busy", Cause: "later"} },
		func() (json.RawMessage, error) { return nil, errors.New("a detail that stays here") },
		func() (json.RawMessage, error) { return json.RawMessage(`{`), nil },
		func() (json.RawMessage, error) { return json.RawMessage(`{"y":2}`), nil },
	}
	w.answer["f"] = func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) {
		if string(payload) != `{"x":1}` {
			t.Errorf("f got %s", payload)
		}
		next := answers[0]
		answers = answers[1:]
		return next()
	}
	w.answer["g"] = func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) {
		if string(payload) != `{"ExecutedVersion":"$LATEST","Payload":{"y":2},"StatusCode":200}` {
			t.Errorf("g got %s", payload)
		}
		return nil, &InvokeError{Name: "Custom", Cause: "why"}
	}
	w.start("run", `{"x":1}`)
	w.step()
	for range 3 {
		w.pass(2 * time.Second)
	}
	if got := w.describe("run"); got.Status != port.ExecutionFailed || got.Error != "Custom" || got.Cause != "why" || got.Transitions != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := setup(t, life)
	ctx := t.Context()
	w.start("run", `{"id":1}`)
	w.step()
	token := w.token("launch")
	for _, wrong := range []string{"", "x", "1", "99.1.0", token + "0", strings.Replace(token, "1.", "01.", 1)} {
		if err := w.engine.Succeed(ctx, wrong, json.RawMessage(`{}`)); !errors.Is(err, port.ErrTokenGone) {
			t.Errorf("%q: got %v", wrong, err)
		}
	}
	if err := w.engine.Succeed(ctx, token, json.RawMessage(`1`)); err == nil || errors.Is(err, port.ErrTokenGone) {
		t.Errorf("output that is not an object: got %v", err)
	}
	if err := w.engine.Fail(ctx, token, "States.Timeout", ""); err == nil || errors.Is(err, port.ErrTokenGone) {
		t.Errorf("reserved error name: got %v", err)
	}
	if err := w.engine.Succeed(ctx, token, json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	for name, late := range map[string]error{
		"twice": w.engine.Succeed(ctx, token, json.RawMessage(`{}`)), "fail": w.engine.Fail(ctx, token, "E", ""), "heartbeat": w.engine.Heartbeat(ctx, token),
	} {
		if !errors.Is(late, port.ErrTokenGone) {
			t.Errorf("%s: got %v", name, late)
		}
	}
	w.pass(30 * time.Second)
	if err := w.engine.Fail(ctx, w.token("right"), "Broken", "really"); err != nil {
		t.Error(err)
	}
	if got := w.describe("run"); got.Status != port.ExecutionFailed || got.Error != "Broken" || got.Cause != "really" {
		t.Errorf("got %+v", got)
	}
}

func TestHeartbeatExtendsDeadline(t *testing.T) {
	t.Parallel()
	w := setup(t, life)
	w.start("run", `{"id":1}`)
	w.step()
	if err := w.engine.Succeed(t.Context(), w.token("launch"), json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	w.pass(30 * time.Second)
	for i := range 10 {
		w.pass(19 * time.Second)
		if err := w.engine.Heartbeat(t.Context(), w.token("right")); err != nil {
			t.Fatalf("heartbeat %d: %v", i, err)
		}
		if i == 5 {
			w.open()
		}
	}
	w.standing("run", port.ExecutionRunning)
	w.pass(20 * time.Second)
	if got := w.describe("run"); got.Status != port.ExecutionFailed || got.Error != "States.Timeout" {
		t.Errorf("got %+v", got)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	w := setup(t, life)
	ctx := t.Context()
	w.start("run", `{"id":1}`)
	w.step()
	for _, name := range []string{"run", "run", "never"} {
		if err := w.engine.Stop(ctx, name, "enough"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := w.describe("run"); got.Status != port.ExecutionAborted || got.Cause != "enough" || got.Transitions != 2 {
		t.Errorf("got %+v", got)
	}
	if err := w.engine.Succeed(ctx, w.token("launch"), json.RawMessage(`{}`)); !errors.Is(err, port.ErrTokenGone) {
		t.Errorf("got %v", err)
	}
	if _, ok := w.engine.NextDue(); ok {
		t.Error("got a pending deadline, want none")
	}
	w.start("queued", `{"id":1}`)
	if err := w.engine.Stop(ctx, "queued", "enough"); err != nil {
		t.Error(err)
	}
	before := w.count("admit")
	w.step()
	if w.count("admit") != before {
		t.Error("a stopped execution made an invocation")
	}
}

func TestManyWaitingExecutions(t *testing.T) {
	t.Parallel()
	const many = 3000
	w := setup(t, `{"StartAt":"A","States":{"A":{"Type":"Wait","SecondsPath":"$.s","Next":"B"},
		"B":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload.$":"$"},"End":true}}}`)
	w.config.Cached = 10
	w.open()
	for i := range many {
		w.start(fmt.Sprintf("run-%d", i), fmt.Sprintf(`{"s":%d}`, i%100+1))
	}
	decoded := 0
	for _, en := range w.engine.entries {
		if en.execution != nil {
			decoded++
		}
	}
	if decoded > 10 {
		t.Errorf("got %d executions in memory", decoded)
	}
	for i := range 100 {
		w.pass(time.Second)
		if got, want := w.count("f"), (i+1)*many/100; got != want {
			t.Fatalf("after %d s: got %d continued, want %d", i+1, got, want)
		}
	}
	if w.engine.Running() != 0 {
		t.Errorf("got %d running executions, want 0", w.engine.Running())
	}
}

// TestRun combines goroutines, a database, tokens from outside, and a stop in
// the middle.
func TestRun(t *testing.T) {
	t.Parallel()
	w := setup(t, strings.ReplaceAll(life, `"Seconds":30`, `"Seconds":0`))
	w.store, _ = database(t)
	w.config.Clock = clock.System{}
	ended := make(chan struct{}, 100)
	tokens := make(chan string, 100)
	w.config.Entered = func(_, state string) {
		if state == "Done" {
			ended <- struct{}{}
		}
	}
	handOut := func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) {
		var in struct{ Token string }
		err := json.Unmarshal(payload, &in)
		tokens <- in.Token
		return json.RawMessage(`{}`), err
	}
	w.answer["launch"], w.answer["right"] = handOut, handOut
	stuck := make(chan struct{})
	w.answer["admit"] = func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		select {
		case stuck <- struct{}{}:
			<-ctx.Done() // interrupted, so repeated after the restart
			return nil, ctx.Err()
		default:
			return json.RawMessage(`{}`), nil
		}
	}
	run := func() (stop func()) {
		w.open()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := w.engine.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		return func() { cancel(); running.Wait() }
	}
	stop := run()
	const many = 40
	for i := range many {
		w.start(fmt.Sprintf("run-%d", i), `{"id":1}`)
		if i == 0 {
			<-stuck
		}
	}
	complete := func(n int) {
		for range n {
			token := <-tokens
			if err := w.engine.Heartbeat(t.Context(), token); err != nil && !errors.Is(err, port.ErrTokenGone) {
				t.Error(err)
			}
			if err := w.engine.Succeed(t.Context(), token, json.RawMessage(`{}`)); err != nil && !errors.Is(err, port.ErrTokenGone) {
				t.Error(err)
			}
		}
	}
	complete(2 * (many - 1))
	for range many - 1 {
		<-ended
	}
	stop()
	w.standing("run-0", port.ExecutionRunning)
	stop = run()
	defer stop()
	complete(2)
	<-ended
	w.standing("run-0", port.ExecutionSucceeded)
	if n := w.count("admit"); n != many+1 {
		t.Errorf("got %d invocations of admit", n)
	}
}

// TestRunKeepsDeadlines advances the clock under Run.
func TestRunKeepsDeadlines(t *testing.T) {
	t.Parallel()
	w := setup(t, `{"StartAt":"A","States":{"A":{"Type":"Wait","SecondsPath":"$.s","Next":"B"},"B":{"Type":"Succeed"}}}`)
	ended := make(chan string, 10)
	w.config.Entered = func(execution, state string) {
		if state == "B" {
			ended <- execution
		}
	}
	w.open()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.engine.Run(ctx) })
	defer func() { cancel(); running.Wait() }()
	w.start("late", `{"s":3600}`)
	w.start("soon", `{"s":60}`)
	for _, want := range []string{"soon", "late"} {
		at, ok := w.engine.NextDue()
		if !ok {
			t.Fatal("got no deadline")
		}
		w.clock.Advance(at.Sub(w.clock.Now()))
		w.engine.nudge() // Run may have set its timer before the clock advanced
		if got := <-ended; got != want {
			t.Errorf("got %s ended, want %s", got, want)
		}
	}
}

// TestResultIsKeptUntilStored uses a store that fails for a while.
func TestResultIsKeptUntilStored(t *testing.T) {
	t.Parallel()
	w := setup(t, life)
	dying := &mortal{store: w.store, left: 1}
	w.store = dying
	w.open()
	w.start("run", `{"id":1}`)
	w.step()
	w.clock.Advance(saveAfter)
	for range 3 {
		if _, err := w.engine.Step(t.Context()); !errors.Is(err, errDead) {
			t.Fatalf("got %v", err)
		}
	}
	dying.mu.Lock()
	dying.left = 1000
	dying.mu.Unlock()
	w.step()
	if dying.left != 999 {
		t.Errorf("got %d writes, want 1", 1000-dying.left)
	}
	w.open()
	w.step()
	if w.count("admit") != 1 || w.count("launch") != 1 {
		t.Errorf("got invocations %v, want none repeated", w.invoked)
	}
}
