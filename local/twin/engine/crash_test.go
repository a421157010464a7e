package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestCrashAtEveryWrite kills the engine at each of its writes, once before the
// write and once right after it, and goes on with what is stored.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"memory", "database"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			writes := 1
			for n := 0; n < writes; n++ {
				for _, applied := range []bool{false, true} {
					writes = crashAt(t, kind, n, applied)
				}
			}
			if writes < 8 {
				t.Errorf("there were only %d writes", writes)
			}
		})
	}
}

// crashAt tells how many writes a life without a crash has.
func crashAt(t *testing.T, kind string, n int, applied bool) int {
	t.Helper()
	w := setup(t, life)
	again := func() store { return w.store }
	if kind == "database" {
		w.store, again = database(t)
	}
	stored := w.store
	dying := &mortal{store: stored, left: n, applied: applied}
	w.store = dying
	w.open()
	if err := w.drive("run"); !errors.Is(err, errDead) {
		t.Fatalf("write %d: the engine does not die: %v", n, err)
	}
	w.store = stored
	if kind == "database" {
		stored = again()
	}
	living := &mortal{store: stored, left: math.MaxInt}
	w.store = living
	w.open()
	if err := w.drive("run"); err != nil {
		t.Fatalf("write %d, applied %v: %v", n, applied, err)
	}
	if x := w.describe("run"); x.Status != port.ExecutionSucceeded || x.Transitions != 7 {
		t.Errorf("write %d, applied %v: got %+v", n, applied, x)
	}
	for _, function := range []string{"admit", "launch", "arn:aws:lambda:local:0:function:left", "right"} {
		if count := w.count(function); count < 1 || count > 2 {
			t.Errorf("write %d, applied %v: %s was invoked %d times", n, applied, function, count)
		}
	}
	return dying.writes + living.writes - 1
}

func TestTimersOverRestarts(t *testing.T) {
	t.Parallel()
	w := setup(t, `{"StartAt":"A","States":{"A":{"Type":"Wait","Seconds":86400,"Next":"B"},"B":{"Type":"Succeed"}}}`)
	var again func() store
	w.store, again = database(t)
	w.open()
	w.start("run", `{}`)
	for range 23 {
		w.store = again()
		w.open()
		w.pass(time.Hour)
		w.standing("run", port.ExecutionRunning)
	}
	w.store = again()
	w.open()
	if at, ok := w.engine.NextDue(); !ok || !at.Equal(epoch.Add(24*time.Hour)) {
		t.Errorf("the next deadline is %v", at)
	}
	w.pass(5 * time.Hour)
	w.standing("run", port.ExecutionSucceeded)
}

// TestHeartbeatsOverRestarts: a heartbeat is not written, and nobody is late for
// one that the engine before may have heard.
func TestHeartbeatsOverRestarts(t *testing.T) {
	t.Parallel()
	w := setup(t, life)
	counting := &mortal{store: w.store, left: math.MaxInt}
	w.store = counting
	w.config.Cached = 1
	w.open()
	w.start("run", `{"id":1}`)
	w.step()
	if err := w.engine.Succeed(t.Context(), w.token("launch"), json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	w.pass(30 * time.Second)
	token := w.token("right")
	w.start("other", `{"id":2}`) // takes the only place in memory
	w.step()
	written := counting.writes
	for range 3 {
		w.pass(19 * time.Second)
		if err := w.engine.Heartbeat(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		w.pass(19 * time.Second)
		w.open()
		w.pass(0)
		if at, ok := w.engine.NextDue(); !ok || !at.Equal(w.clock.Now().Add(20*time.Second)) {
			t.Errorf("the next deadline is %v", at)
		}
		if err := w.engine.Heartbeat(t.Context(), token+"x"); !errors.Is(err, port.ErrTokenGone) {
			t.Errorf("a token that is none: %v", err)
		}
	}
	if counting.writes != written {
		t.Errorf("%d writes for heartbeats", counting.writes-written)
	}
	w.standing("run", port.ExecutionRunning)
	w.pass(20 * time.Second)
	w.standing("run", port.ExecutionFailed)
	if err := w.engine.Heartbeat(t.Context(), token); !errors.Is(err, port.ErrTokenGone) {
		t.Errorf("the token of a state that was left: %v", err)
	}
}

func TestAnEarlyTokenOverARestart(t *testing.T) {
	t.Parallel()
	w := setup(t, life)
	ctx, cancel := context.WithCancel(t.Context())
	w.answer["launch"] = func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		if err := w.engine.Succeed(ctx, w.token("launch"), json.RawMessage(`{"early":true}`)); err != nil {
			t.Error(err)
		}
		cancel()
		return nil, ctx.Err()
	}
	w.start("run", `{"id":1}`)
	if _, err := w.engine.Step(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the invocation was not cut off: %v", err)
	}
	w.open()
	w.step()
	if w.count("launch") != 1 {
		t.Error("a state whose token was completed is invoked again")
	}
	w.pass(31 * time.Second)
	if w.count("right") != 1 {
		t.Error("the execution does not go on")
	}
}

func TestAnExecutionKeepsItsDefinition(t *testing.T) {
	t.Parallel()
	const first = `{"StartAt":"A","States":{"A":{"Type":"Wait","Seconds":60,"Next":"Old"},"Old":{"Type":"Succeed"}}}`
	const second = `{"StartAt":"A","States":{"A":{"Type":"Wait","Seconds":60,"Next":"New"},"New":{"Type":"Succeed"}}}`
	w := setup(t, first)
	w.start("old", `{}`)
	w.config.Definition = []byte(second)
	w.open()
	w.start("new", `{}`)
	w.pass(time.Minute)
	w.standing("old", port.ExecutionSucceeded)
	w.standing("new", port.ExecutionSucceeded)
	if got := fmt.Sprint(w.entered); got != "[A A Old New]" {
		t.Errorf("entered %s", got)
	}
	if n, err := w.engine.Purge(t.Context(), w.clock.Now().Add(time.Second)); n != 2 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
	if _, err := w.store.definition(t.Context(), digest([]byte(first))); err == nil {
		t.Error("a definition that nobody needs is kept")
	}
	if _, err := w.store.definition(t.Context(), digest([]byte(second))); err != nil {
		t.Error(err)
	}
}

func TestAnExecutionThatCannotBeReadFails(t *testing.T) {
	t.Parallel()
	w := setup(t, life)
	w.start("run", `{}`)
	r, err := w.store.byID(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	r.document = []byte(`{"v":99}`)
	if err := w.store.update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.open()
	w.standing("run", port.ExecutionFailed)
	if w.engine.Running() != 0 {
		t.Error("it still runs")
	}
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t, life)
	for name, definition := range map[string]string{
		"unsupported": `{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"arn:aws:states:::sqs:sendMessage","End":true}}}`,
		"invalid":     `{"StartAt":"A"}`,
	} {
		config := w.config
		config.Definition = []byte(definition)
		_, err := New(t.Context(), config)
		var unsupported *asl.UnsupportedError
		var invalid *asl.InvalidError
		if !errors.As(err, &unsupported) && !errors.As(err, &invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := New(t.Context(), Config{Definition: []byte(life)}); err == nil {
		t.Error("an engine needs a clock")
	}
}
