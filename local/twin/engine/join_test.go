package engine

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
)

var errRefused = errors.New("the commit was refused")

// commit commits a transaction of another package joined with the calls. It returns which calls
// were made.
func (w *world) commit(ctx context.Context, result error, calls ...port.ExecutionCall) []bool {
	w.t.Helper()
	joined, finish := w.engine.Join(ctx, calls...)
	err := w.store.(rows).db.Write(joined, func(*sqlite.Tx) error { return result })
	if !errors.Is(err, result) {
		w.t.Errorf("got %v, want %v", err, result)
	}
	return finish()
}

// onDisk returns a world with a store in a file. again reopens the file and the engine, as
// after a crash.
func onDisk(t *testing.T) (w *world, again func()) {
	t.Helper()
	w = setup(t, life)
	s, reopen := database(t)
	w.store = s
	w.open()
	return w, func() {
		w.store = reopen()
		w.open()
	}
}

func TestJoinedStart(t *testing.T) {
	t.Parallel()
	w, again := onDisk(t)
	start := port.ExecutionCall{Start: "run", Data: json.RawMessage(`{"id":1}`)}
	if made := w.commit(t.Context(), errRefused, start); made[0] {
		t.Error("got a call of a refused commit, want none")
	}
	if _, err := w.engine.Describe(t.Context(), "run"); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v, want no execution", err)
	}
	before := w.store.(rows).db.Stats()
	if made := w.commit(t.Context(), nil, start); !made[0] {
		t.Error("got no call, want one")
	}
	if commits := w.store.(rows).db.Stats().Commits - before.Commits; commits != 1 {
		t.Errorf("got %d commits, want 1", commits)
	}
	if made := w.commit(t.Context(), nil, start); made[0] {
		t.Error("got a second start, want it left to Start")
	}
	again()
	w.step()
	if w.count("admit") != 1 || w.count("launch") != 1 {
		t.Errorf("got invocations %v, want admit and launch", w.invoked)
	}
}

func TestJoinedToken(t *testing.T) {
	t.Parallel()
	w, again := onDisk(t)
	w.start("run", `{"id":1}`)
	w.step()
	token := w.token("launch")
	succeed := port.ExecutionCall{Token: token, Data: json.RawMessage(`{"by":"token"}`)}
	if made := w.commit(t.Context(), errRefused, succeed); made[0] {
		t.Error("got a call of a refused commit, want none")
	}
	w.step()
	w.standing("run", port.ExecutionRunning)
	if made := w.commit(t.Context(), nil, succeed); !made[0] {
		t.Error("got no call, want one")
	}
	again()
	if err := w.engine.Succeed(t.Context(), token, json.RawMessage(`{}`)); !errors.Is(err, port.ErrTokenGone) {
		t.Errorf("got %v, want a token that is gone", err)
	}
	w.pass(30 * time.Second)
	if w.count("launch") != 1 || w.count("right") != 1 {
		t.Errorf("got invocations %v, want the execution to continue behind launch", w.invoked)
	}
	if made := w.commit(t.Context(), nil, succeed); !made[0] {
		t.Error("got a token that is to be completed again, want one that is gone")
	}
}

// TestUnreadableCallIsNotJoined checks that calls with invalid data are left to the unjoined
// methods.
func TestUnreadableCallIsNotJoined(t *testing.T) {
	t.Parallel()
	w, _ := onDisk(t)
	w.start("run", `{"id":1}`)
	w.step()
	for _, c := range []port.ExecutionCall{
		{Start: "other", Data: json.RawMessage(`[]`)},
		{Start: "no name", Data: json.RawMessage(`{}`)},
		{Token: w.token("launch"), Data: json.RawMessage(`[]`)},
		{Token: w.token("launch"), Error: "States.Timeout"},
	} {
		if made := w.commit(t.Context(), nil, c); made[0] {
			t.Errorf("%+v: got it made, want it left out", c)
		}
		if err := c.Make(t.Context(), w.engine); err == nil {
			t.Errorf("%+v: got no error", c)
		}
	}
}

// TestResultIsStoredWithNextCommit has a handler that commits its token, like the handlers of
// runs. The process is killed right after the commit.
func TestResultIsStoredWithNextCommit(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"committed": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, again := onDisk(t)
			ctx, cancel := context.WithCancel(t.Context())
			w.answer["launch"] = func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
				var result error
				if !committed {
					result = errRefused
				}
				w.commit(ctx, result)
				cancel()
				return nil, ctx.Err()
			}
			w.start("run", `{"id":1}`)
			if _, err := w.engine.Step(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want the process killed", err)
			}
			token := w.token("launch")
			delete(w.answer, "launch")
			again()
			w.step()
			if kept := w.token("launch") == token; kept != committed {
				t.Errorf("got the same token %v, want %v", kept, committed)
			}
			if repeated := w.count("admit") == 2; repeated == committed {
				t.Errorf("got invocations %v", w.invoked)
			}
		})
	}
}

// TestResultsAreStoredSoon checks that changed executions are stored together after a delay,
// and immediately when Run ends.
func TestResultsAreStoredSoon(t *testing.T) {
	t.Parallel()
	w, again := onDisk(t)
	for _, name := range []string{"a", "b", "c"} {
		w.start(name, `{"id":1}`)
	}
	before := w.store.(rows).db.Stats()
	w.step()
	w.pass(saveAfter)
	if commits := w.store.(rows).db.Stats().Commits - before.Commits; commits != 1 {
		t.Errorf("got %d commits, want 1", commits)
	}
	again()
	w.step()
	if w.count("admit") != 3 || w.count("launch") != 3 {
		t.Errorf("got invocations %v, want none repeated", w.invoked)
	}
	w.start("d", `{"id":1}`)
	ctx, cancel := context.WithCancel(t.Context())
	launched := make(chan struct{})
	w.answer["launch"] = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		close(launched)
		return json.RawMessage(`{}`), nil
	}
	ended := make(chan error)
	go func() { ended <- w.engine.Run(ctx) }()
	<-launched
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	again()
	w.step()
	if w.count("admit") != 4 || w.count("launch") != 4 {
		t.Errorf("got invocations %v, want none repeated", w.invoked)
	}
}
