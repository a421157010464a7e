package simulation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// home is the storage and the executions that Sortie's processes use.
type home interface {
	// open opens the store for a new process, and start then starts the executions. close
	// releases everything that a process has opened.
	open(ctx context.Context) (database, error)
	start(ctx context.Context) error
	close() error
	// feed returns the event streams for a process that relays, delivers or reads.
	feed(ctx context.Context) (port.Feed, error)
	// changes returns the records of the table's stream in a lane, after the first handled
	// ones, that have events. all is the number of all records. The local home has no such
	// stream.
	changes(lane, handled int) (records []streamed, all int, err error)
	// executions returns the executions that the processes use. states returns them without
	// faults and quotas.
	executions() port.Executions
	states() port.Executions
	// step does the work of the executions that is due now. due returns the time of their next
	// work; false without work.
	step(ctx context.Context) error
	due() (time.Time, bool)
	// settle makes all writes visible to reads that may be stale.
	settle()
	// survivesCrash reports whether every call runs in its own process, so that the executions
	// survive a crash.
	survivesCrash() bool
}

// database is a store with webhooks and the outbox of changes.
type database interface {
	port.Store
	port.WebhookStore
	port.Outbox
}

// eventRetention is longer than a simulation.
const eventRetention = 400 * 24 * time.Hour

// localHome is SQLite and the local engine, inside the process.
type localHome struct {
	w      *base
	path   string
	db     *sqlite.DB
	engine *engine.Engine
}

// newLocalHome returns a home with an empty database.
func newLocalHome(w *base) (*localHome, error) {
	h := &localHome{w: w, path: filepath.Join(w.dir, "sortie.db")}
	return h, copyTemplate(h.path)
}

// open implements home.
func (h *localHome) open(ctx context.Context) (database, error) {
	var err error
	if h.db, err = sqlite.Open(ctx, h.path); err != nil {
		return nil, err
	}
	store, err := sqlite.NewStore(ctx, h.db, hostClock{h.w})
	if err != nil {
		return nil, err
	}
	store.EncodeEvents(api.Published("http://sortie").Encode)
	return store, nil
}

// feed implements home.
func (h *localHome) feed(ctx context.Context) (port.Feed, error) {
	return sqlite.NewFeed(ctx, h.db, sqlite.FeedConfig{Clock: hostClock{h.w}, Retention: eventRetention, Random: h.w.random.Uint64})
}

// changes implements home.
func (h *localHome) changes(int, int) ([]streamed, int, error) { return nil, 0, nil }

// start implements home.
func (h *localHome) start(ctx context.Context) error {
	machine, err := stateMachine()
	if err != nil {
		return err
	}
	h.engine, err = engine.New(ctx, engine.Config{
		DB: h.db, Clock: hostClock{h.w}, Name: "run", MaxEvents: h.w.config.MaxEvents, Definition: machine, Log: h.w.log, Random: h.w.random.Uint64,
		Invoke: h.w.invoke, Entered: h.w.entered,
	})
	return err
}

// close implements home.
func (h *localHome) close() error {
	if err := h.db.Close(); err != nil {
		return errors.Join(errors.New("cannot close the database"), err)
	}
	return nil
}

// executions implements home.
func (h *localHome) executions() port.Executions { return h.engine }

// states implements home.
func (h *localHome) states() port.Executions { return h.engine }

// step implements home.
func (h *localHome) step(ctx context.Context) error {
	if _, err := h.engine.Step(ctx); err != nil {
		return fmt.Errorf("step of the engine: %w", err)
	}
	return nil
}

// due implements home.
func (h *localHome) due() (time.Time, bool) {
	at, ok := h.engine.NextDue()
	return at.Add(-h.w.process.clockOffset), ok
}

// settle implements home.
func (h *localHome) settle() {}

// survivesCrash implements home.
func (h *localHome) survivesCrash() bool { return false }
