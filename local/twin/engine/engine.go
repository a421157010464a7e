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
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Config configures an engine.
type Config struct {
	// DB stores the executions; nil keeps them in memory.
	DB *sqlite.DB
	// Clock is required.
	Clock clock.Clock
	// Name is the name of the state machine: letters, digits, '-' and '_'. It
	// appears in the context object.
	Name string
	// Definition is the state machine in Amazon States Language with its
	// functions substituted. New executions use it.
	Definition []byte
	// Invoke calls a function and is required. It returns an *InvokeError if
	// the function failed with a name; any other error becomes Lambda.Unknown.
	// When ctx ends, a failed invocation counts as interrupted, and is repeated
	// at the next start.
	Invoke func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error)
	// Log receives ends and failures; nil discards them.
	Log *slog.Logger
	// Concurrency is the largest number of concurrent invocations (default
	// 256).
	Concurrency int
	// Cached is the number of waiting executions that stay decoded in memory
	// (default 256), in addition to those with an invocation in flight.
	Cached int
	// MaxEvents is the number of history events after which an execution fails
	// (default asl.MaxEvents, the quota of Step Functions).
	MaxEvents int
	// Random returns 64 random bits, from which tokens are made; nil means the
	// host's generator.
	Random func() uint64
	// Entered is called for every state that an execution enters, in order,
	// after the commit; nil is allowed. The execution waits for it, so it must
	// not change the same execution.
	Entered func(execution, state string)
}

// Engine runs a set of executions. It is safe for concurrent use.
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
	recent   []*entry // a ring of the executions whose document is in memory
	turn     int
	later    []unsaved // in the order of their times
	ending   int       // executions in entries that have ended and are not yet stored as ended
}

var _ port.Executions = (*Engine)(nil)

type definition struct {
	digest  string
	machine *asl.Machine
}

// entry is a running execution.
type entry struct {
	id int64

	// Guarded by Engine.mu.
	due   int64
	place int // position in timers, from 1; 0 if absent

	// mu is held while the execution is changed and stored. A goroutine that
	// holds Engine.mu may only TryLock it.
	mu   sync.Mutex
	over bool
	// listens is true after the execution was read; only then is pulse valid.
	listens bool
	// pulse collects heartbeats that the execution has not applied yet.
	pulse asl.Pulse
	// The execution and its name; nil and empty if they are only in the store.
	execution *asl.Execution
	name      string
	// definition is the digest of the execution's machine, while that is in memory.
	definition string
	// later is the change that is not stored yet; nil if there is no such change. It has the
	// document if the execution is not in memory.
	later *row
}

// Migrate creates or upgrades the engine's tables in db, as New does. It
// returns sqlite.ErrNewer and changes nothing if a newer program wrote them. A
// caller with other tables calls it before it changes those.
func Migrate(ctx context.Context, db *sqlite.DB) error {
	if err := db.Migrate(ctx, "engine", migrations()); err != nil {
		return fmt.Errorf("cannot use the tables of the executions: %w", err)
	}
	return nil
}

// New returns an engine with the executions of the database. They resume with
// the first Run or Step.
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
		return nil, errors.New("missing clock or invoke function")
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

// recover loads the running executions from the store.
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
		e.config.Log.InfoContext(ctx, "executions resume", "running", len(e.entries), "invocations", len(e.calls))
	}
	return nil
}

// definition returns a machine by its digest.
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

// Purge removes executions that ended before the time, and returns how many.
// The port promises to keep them for 90 days; then their names are free.
func (e *Engine) Purge(ctx context.Context, before time.Time) (int64, error) {
	count, err := e.store.purge(ctx, milli(before), e.machine.digest)
	if err != nil {
		return 0, fmt.Errorf("cannot purge old executions: %w", err)
	}
	return count, nil
}

// Running returns the number of executions that have not ended.
func (e *Engine) Running() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.entries) - e.ending
}
