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
// write and once right after it, and resumes from the store.
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
			if writes < 4 {
				t.Errorf("got %d writes, want more", writes)
			}
		})
	}
}

// crashAt crashes the engine at write n of an execution and resumes it. It returns the number
// of writes without a crash.
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
		t.Fatalf("write %d: got %v, want the engine to die", n, err)
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

func TestTimersSurviveRestart(t *testing.T) {
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
		t.Errorf("got next deadline %v", at)
	}
	w.pass(5 * time.Hour)
	w.standing("run", port.ExecutionSucceeded)
}

// Heartbeats are not stored, so every heartbeat clock restarts with the engine.
func TestHeartbeatClockRestartsWithEngine(t *testing.T) {
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
	w.start("other", `{"id":2}`) // occupies the only cache slot
	w.step()
	w.pass(saveAfter)
	if err := w.engine.Heartbeat(t.Context(), token); err != nil {
		t.Fatal(err)
	}
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
			t.Errorf("got next deadline %v", at)
		}
		if err := w.engine.Heartbeat(t.Context(), token+"x"); !errors.Is(err, port.ErrTokenGone) {
			t.Errorf("unknown token: got %v", err)
		}
	}
	if counting.writes != written {
		t.Errorf("got %d writes for heartbeats, want 0", counting.writes-written)
	}
	w.standing("run", port.ExecutionRunning)
	w.pass(20 * time.Second)
	w.standing("run", port.ExecutionFailed)
	if err := w.engine.Heartbeat(t.Context(), token); !errors.Is(err, port.ErrTokenGone) {
		t.Errorf("token of an earlier state: got %v", err)
	}
}

func TestEarlyTokenSurvivesRestart(t *testing.T) {
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
		t.Fatalf("interrupted invocation: got %v", err)
	}
	w.open()
	w.step()
	if w.count("launch") != 1 {
		t.Error("a state whose token was completed was invoked again")
	}
	w.pass(31 * time.Second)
	if w.count("right") != 1 {
		t.Error("the execution did not continue")
	}
}

func TestExecutionKeepsDefinition(t *testing.T) {
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
		t.Errorf("got states %s", got)
	}
	if n, err := w.engine.Purge(t.Context(), w.clock.Now().Add(time.Second)); n != 2 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
	if _, err := w.store.definition(t.Context(), digest([]byte(first))); err == nil {
		t.Error("got an unused definition, want it purged")
	}
	if _, err := w.store.definition(t.Context(), digest([]byte(second))); err != nil {
		t.Error(err)
	}
}

// TestPurgeWorksInSlices checks that no write of a purge removes more than
// purgeSlice executions, so that other writers do not wait for all of them.
func TestPurgeWorksInSlices(t *testing.T) {
	t.Parallel()
	s, _ := database(t)
	db := s.(rows).db
	const many = 2*purgeSlice + 1
	for id := range int64(many + 1) {
		r := &row{id: id + 1, name: fmt.Sprint("run-", id), definition: "d", status: port.ExecutionSucceeded, ended: 1 + id}
		if taken, err := s.insert(t.Context(), r, 0); taken != nil || err != nil {
			t.Fatalf("got %v, %v, want an inserted row", taken, err)
		}
	}
	for _, digest := range []string{"d", "unused"} {
		if err := s.define(t.Context(), digest, []byte(digest)); err != nil {
			t.Fatal(err)
		}
	}
	before := db.Stats()
	if n, err := s.purge(t.Context(), many+1, "kept"); n != many || err != nil {
		t.Errorf("got %d purged, %v, want %d", n, err, many)
	}
	after := db.Stats()
	if writes := after.Changes - before.Changes; writes != 4 { // the last removes the unused definition
		t.Errorf("got %d executions removed in %d writes, want 4 writes", many, writes)
	}
	if _, err := s.byName(t.Context(), fmt.Sprint("run-", many)); err != nil {
		t.Errorf("got %v for an execution that ended later, want it kept", err)
	}
	if _, err := s.definition(t.Context(), "d"); err != nil {
		t.Errorf("got %v for a used definition, want it kept", err)
	}
	if _, err := s.definition(t.Context(), "unused"); err == nil {
		t.Error("got the unused definition, want it removed")
	}
}

func TestUnreadableExecutionFails(t *testing.T) {
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
		t.Error("got a running execution, want it failed")
	}
}

func TestInvalidDefinitions(t *testing.T) {
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
		t.Error("New without a clock: got no error")
	}
}
