package engine

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Config is what an engine is made of.
type Config struct {
	// DB keeps the executions; nil keeps them in memory.
	DB *sqlite.DB
	// Clock is required.
	Clock clock.Clock
	// Name of the state machine: letters, digits, '-' and '_'. It shows in the
	// context object.
	Name string
	// Definition in Amazon States Language, with its functions put in.
	// Executions started from now on run it.
	Definition []byte
	// Invoke calls a function. Required. Its error is an *InvokeError where the
	// function failed with a name; any other becomes Lambda.Unknown. When ctx
	// ends, an invocation that fails counts as one that never ended, and is made
	// again at the next start.
	Invoke func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error)
	// Log is where ends and failures are told; nil is nowhere.
	Log *slog.Logger
	// Concurrency is how many invocations run at once (default 256).
	Concurrency int
	// Cached is how many waiting executions stay decoded in memory (default
	// 256), besides those with an invocation in flight.
	Cached int
	// Random gives 64 random bits; nil takes the host's. Tokens are made of it.
	Random func() uint64
	// Entered is told every state that an execution enters, in order, when that
	// was committed; nil where nobody asks. The execution waits for it: it must
	// not change the same execution.
	Entered func(execution, state string)
}

// Engine is a running set of executions. It is safe for use by many
// goroutines.
type Engine struct {
	config  Config
	store   store
	machine *definition
	wake    chan struct{}
	began   time.Time

	mu       sync.Mutex
	entries  map[int64]*entry
	timers   timers
	calls    []call
	last     int64 // id
	machines map[string]*definition
	recent   []*entry // a ring: those whose document may stay in memory
	turn     int
}

var _ port.Executions = (*Engine)(nil)

type definition struct {
	digest  string
	machine *asl.Machine
}

// entry is an execution that runs.
type entry struct {
	id int64

	// Guarded by Engine.mu.
	due   int64
	place int // in timers, from 1; 0: not there

	// mu is held while the execution is changed and stored. Nobody takes it
	// while holding Engine.mu, but by TryLock.
	mu   sync.Mutex
	over bool
	// listens: pulse is the execution's. It is not before the execution was read.
	listens bool
	// pulse hears the heartbeats, which the execution may not know of yet.
	pulse asl.Pulse
	// The execution and its name; nil and empty: they are in the store alone.
	execution *asl.Execution
	name      string
}

// Migrate makes the engine's tables in db, or brings them up to date, as New
// does. sqlite.ErrNewer, and nothing is touched, where they are those of a newer
// program: who has more to go on with than executions learns it first.
func Migrate(ctx context.Context, db *sqlite.DB) error {
	if err := db.Migrate(ctx, "engine", migrations()); err != nil {
		return fmt.Errorf("cannot use the tables of the executions: %w", err)
	}
	return nil
}

// New makes an engine and takes up the executions that the database holds. They
// go on with the first Run or Step.
func New(ctx context.Context, config Config) (*Engine, error) {
	var s store = newMemory()
	if config.DB != nil {
		if err := Migrate(ctx, config.DB); err != nil {
			return nil, err
		}
		s = rows{config.DB}
	}
	e, err := open(ctx, config, s)
	if err != nil {
		return nil, fmt.Errorf("cannot start the engine: %w", err)
	}
	return e, nil
}

func open(ctx context.Context, config Config, s store) (*Engine, error) {
	if config.Clock == nil || config.Invoke == nil {
		return nil, errors.New("it needs a clock and something to invoke")
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Concurrency <= 0 {
		config.Concurrency = 256
	}
	if config.Cached <= 0 {
		config.Cached = 256
	}
	if config.Random == nil {
		config.Random = random
	}
	e := &Engine{
		config: config, store: s, wake: make(chan struct{}, 1), began: config.Clock.Now(),
		entries: map[int64]*entry{}, machines: map[string]*definition{}, recent: make([]*entry, config.Cached),
	}
	machine, err := parse(config.Definition)
	if err != nil {
		return nil, err
	}
	e.machine = machine
	e.machines[machine.digest] = machine
	if err := s.define(ctx, machine.digest, config.Definition); err != nil {
		return nil, err
	}
	return e, e.recover(ctx)
}

func random() uint64 {
	var bytes [8]byte
	_, _ = crand.Read(bytes[:]) // never fails
	return binary.LittleEndian.Uint64(bytes[:])
}

func parse(text []byte) (*definition, error) {
	machine, err := asl.Parse(text)
	if err != nil {
		return nil, err
	}
	for _, resource := range machine.Resources() {
		if resource != lambdaInvoke && resource != lambdaCallback && !strings.HasPrefix(resource, lambdaARN) {
			return nil, &asl.UnsupportedError{Feature: "the resource " + resource, Place: "Resource"}
		}
	}
	return &definition{digest: digest(text), machine: machine}, nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// recover takes up what the store holds.
func (e *Engine) recover(ctx context.Context) error {
	var resumed []*entry
	last, err := e.store.running(ctx, func(r *row) {
		en := &entry{id: r.id}
		e.entries[r.id] = en
		if r.due != 0 {
			e.timers.set(en, r.due)
		}
		if r.calls {
			resumed = append(resumed, en)
		}
	})
	if err != nil {
		return err
	}
	e.last = last
	for _, en := range resumed {
		if err := e.resume(ctx, en); err != nil {
			return err
		}
	}
	if len(e.entries) > 0 {
		e.config.Log.InfoContext(ctx, "executions go on", "running", len(e.entries), "invocations", len(e.calls))
	}
	return nil
}

// definition finds a machine by its digest.
func (e *Engine) definition(ctx context.Context, digest string) (*definition, error) {
	e.mu.Lock()
	found := e.machines[digest]
	e.mu.Unlock()
	if found != nil {
		return found, nil
	}
	text, err := e.store.definition(ctx, digest)
	if err != nil {
		return nil, err
	}
	if found, err = parse(text); err != nil {
		return nil, errors.Join(errUnreadable, err)
	}
	e.mu.Lock()
	e.machines[digest] = found
	e.mu.Unlock()
	return found, nil
}

// Purge forgets executions that ended before the time, and tells how many. The
// port promises 90 days; their names are free then.
func (e *Engine) Purge(ctx context.Context, before time.Time) (int64, error) {
	count, err := e.store.purge(ctx, milli(before), e.machine.digest)
	if err != nil {
		return 0, fmt.Errorf("cannot forget old executions: %w", err)
	}
	return count, nil
}

// Running counts the executions that have not ended.
func (e *Engine) Running() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.entries)
}
