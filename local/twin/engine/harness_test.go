package engine

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// life contains everything that an execution can wait for: a retried
// invocation, two tokens, a Wait, branches.
const life = `{"StartAt":"Admit","States":{
"Admit":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"admit","Payload":{"id.$":"$.id","step.$":"$$.State.Name"}},
 "ResultPath":"$.admit","Retry":[{"ErrorEquals":["Busy"],"IntervalSeconds":2}],"Next":"Launch"},
"Launch":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken","Parameters":{"FunctionName":"launch","Payload":{"token.$":"$$.Task.Token"}},
 "ResultPath":"$.launch","TimeoutSeconds":600,"Next":"Rest"},
"Rest":{"Type":"Wait","Seconds":30,"Next":"Both"},
"Both":{"Type":"Parallel","ResultPath":"$.both","Branches":[
 {"StartAt":"Left","States":{"Left":{"Type":"Task","Resource":"arn:aws:lambda:local:0:function:left","End":true}}},
 {"StartAt":"Right","States":{"Right":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken","Parameters":{"FunctionName":"right","Payload":{"token.$":"$$.Task.Token"}},
  "HeartbeatSeconds":20,"End":true}}}],"Next":"Done"},
"Done":{"Type":"Succeed"}}}`

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is an engine with the test's handlers, and the store that survives it.
type world struct {
	t       *testing.T
	clock   *clock.Virtual
	store   store
	config  Config
	engine  *Engine
	mu      sync.Mutex
	tokens  map[string]string // the newest token of each function
	invoked []string
	entered []string
	answer  map[string]func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error)
}

func setup(t *testing.T, definition string) *world {
	t.Helper()
	w := &world{
		t: t, clock: clock.NewVirtual(epoch), store: newMemory(), tokens: map[string]string{},
		answer: map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){},
	}
	w.config = Config{
		Clock: w.clock, Name: "test", Definition: []byte(definition), Invoke: w.invoke,
		Entered: func(_, state string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.entered = append(w.entered, state)
		},
	}
	w.open()
	return w
}

// open opens a new engine on the store, as after a crash.
func (w *world) open() {
	w.t.Helper()
	e, err := open(w.t.Context(), w.config, w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	w.engine = e
}

func (w *world) invoke(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
	var in struct{ Token string }
	if err := json.Unmarshal(payload, &in); err != nil {
		w.t.Errorf("%s got %s", function, payload)
	}
	w.mu.Lock()
	w.invoked = append(w.invoked, function)
	if in.Token != "" {
		w.tokens[function] = in.Token
	}
	answer := w.answer[function]
	w.mu.Unlock()
	if answer != nil {
		return answer(ctx, payload)
	}
	return json.RawMessage(`{"from":"` + function + `"}`), nil
}

func (w *world) token(function string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens[function]
}

func (w *world) count(function string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.invoked {
		if each == function {
			n++
		}
	}
	return n
}

func (w *world) start(name, input string) {
	w.t.Helper()
	if err := w.engine.Start(w.t.Context(), name, json.RawMessage(input)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) step() {
	w.t.Helper()
	if _, err := w.engine.Step(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.clock.Advance(d)
	w.step()
}

func (w *world) describe(name string) port.Execution {
	w.t.Helper()
	x, err := w.engine.Describe(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

func (w *world) standing(name string, want port.ExecutionStatus) {
	w.t.Helper()
	if got := w.describe(name); got.Status != want {
		w.t.Errorf("the execution %s is %s (%s: %s), want %s", name, got.Status, got.Error, got.Cause, want)
	}
}

// drive runs the execution until it has ended or the engine has crashed.
func (w *world) drive(name string) error {
	ctx := w.t.Context()
	if err := w.engine.Start(ctx, name, json.RawMessage(`{"id":"`+name+`"}`)); err != nil {
		return err
	}
	for range 100 {
		if _, err := w.engine.Step(ctx); err != nil {
			return err
		}
		x, err := w.engine.Describe(ctx, name)
		if err != nil || x.Status != port.ExecutionRunning {
			return err
		}
		for _, function := range []string{"launch", "right"} {
			if token := w.token(function); token != "" {
				_ = w.engine.Heartbeat(ctx, token)
				err := w.engine.Succeed(ctx, token, json.RawMessage(`{"by":"token"}`))
				if err != nil && !errors.Is(err, port.ErrTokenGone) {
					return err
				}
			}
		}
		if at, ok := w.engine.NextDue(); ok {
			w.clock.Advance(max(0, at.Sub(w.clock.Now())))
		}
	}
	return errors.New("the execution did not end")
}

var errDead = errors.New("the process is dead")

// mortal is a store whose process dies at the nth write: before it, or right after it.
type mortal struct {
	store
	mu      sync.Mutex
	left    int
	applied bool
	writes  int
}

func (m *mortal) write(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	m.left--
	switch {
	case m.left < -1, m.left == -1 && !m.applied:
		return errDead
	case m.left == -1:
		return errors.Join(do(), errDead)
	}
	return do()
}

func (m *mortal) insert(ctx context.Context, r *row, since int64) (taken *row, err error) {
	err = m.write(func() error {
		var err error
		taken, err = m.store.insert(ctx, r, since)
		return err
	})
	return taken, err
}

func (m *mortal) update(ctx context.Context, all ...*row) error {
	return m.write(func() error { return m.store.update(ctx, all...) })
}

// database returns a store in a file, and a function that reopens the file.
func database(t *testing.T) (s store, again func() store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sortie.db")
	var db *sqlite.DB
	again = func() store {
		if db != nil {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
		var err error
		if db, err = sqlite.Open(context.Background(), path); err != nil {
			t.Fatal(err)
		}
		if err := db.Migrate(context.Background(), "engine", migrations()); err != nil {
			t.Fatal(err)
		}
		return rows{db}
	}
	s = again()
	t.Cleanup(func() { _ = db.Close() })
	return s, again
}
