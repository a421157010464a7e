package harness

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
	Close() error
	// Feed returns the event streams for a process that relays, delivers or reads.
	Feed(ctx context.Context) (port.Feed, error)
	// Changes returns the records of the table's stream in a lane, after the first handled
	// ones, that have events. all is the number of all records. The local home has no such
	// stream.
	Changes(lane, handled int) (records []Streamed, all int, err error)
	// executions returns the executions that the processes use. states returns them without
	// faults and quotas.
	executions() port.Executions
	States() port.Executions
	// Step does the work of the executions that is due now. due returns the time of their next
	// work; false without work.
	Step(ctx context.Context) error
	Due() (time.Time, bool)
	// Settle makes all writes visible to reads that may be stale.
	Settle()
	// SurvivesCrash reports whether every call runs in its own process, so that the executions
	// survive a crash.
	SurvivesCrash() bool
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
	W      *Base
	path   string
	db     *sqlite.DB
	engine *engine.Engine
}

// NewLocalHome returns a home with an empty database.
func NewLocalHome(w *Base) (*localHome, error) {
	h := &localHome{W: w, path: filepath.Join(w.dir, "sortie.db")}
	return h, copyTemplate(h.path)
}

// open implements home.
func (h *localHome) open(ctx context.Context) (database, error) {
	var err error
	if h.db, err = sqlite.Open(ctx, h.path); err != nil {
		return nil, err
	}
	store, err := sqlite.NewStore(ctx, h.db, HostClock{h.W})
	if err != nil {
		return nil, err
	}
	store.EncodeEvents(api.Published("http://sortie").Encode)
	return store, nil
}

// Feed implements home.
func (h *localHome) Feed(ctx context.Context) (port.Feed, error) {
	return sqlite.NewFeed(ctx, h.db, sqlite.FeedConfig{Clock: HostClock{h.W}, Retention: eventRetention, Random: h.W.Random.Uint64})
}

// Changes implements home.
func (h *localHome) Changes(int, int) ([]Streamed, int, error) { return nil, 0, nil }

// start implements home.
func (h *localHome) start(ctx context.Context) error {
	machine, err := stateMachine()
	if err != nil {
		return err
	}
	h.engine, err = engine.New(ctx, engine.Config{
		DB: h.db, Clock: HostClock{h.W}, Name: "run", MaxEvents: h.W.Config.MaxEvents, Definition: machine, Log: h.W.Log, Random: h.W.Random.Uint64,
		Invoke: h.W.invoke, Entered: h.W.entered,
	})
	return err
}

// Close implements home.
func (h *localHome) Close() error {
	if err := h.db.Close(); err != nil {
		return errors.Join(errors.New("cannot close the database"), err)
	}
	return nil
}

// executions implements home.
func (h *localHome) executions() port.Executions { return h.engine }

// States implements home.
func (h *localHome) States() port.Executions { return h.engine }

// Step implements home.
func (h *localHome) Step(ctx context.Context) error {
	if _, err := h.engine.Step(ctx); err != nil {
		return fmt.Errorf("step of the engine: %w", err)
	}
	return nil
}

// Due implements home.
func (h *localHome) Due() (time.Time, bool) {
	at, ok := h.engine.NextDue()
	return at.Add(-h.W.Process.clockOffset), ok
}

// Settle implements home.
func (h *localHome) Settle() {}

// SurvivesCrash implements home.
func (h *localHome) SurvivesCrash() bool { return false }
