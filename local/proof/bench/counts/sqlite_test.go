package counts_test

import (
	"os"
	"path/filepath"
	"time"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// retention is longer than a test.
const retention = 7 * 24 * time.Hour

// onSQLite is the local system: SQLite, the local engine and a dispatcher.
type onSQLite struct {
	w       *world
	path    string
	db      *sqlite.DB
	records *sqlite.Store
	streams *sqlite.Feed
	feed    *signedFeed
	calls   *lateEngine
	relays  *delivery.Relay
	// decoded counts the records in the outbox, which the relay decodes.
	decoded int
}

// openSQLite opens a database in a folder of the test.
func openSQLite(w *world) home {
	h := &onSQLite{w: w, path: filepath.Join(w.TempDir(), "sortie.db"), calls: &lateEngine{}}
	var err error
	h.db, err = sqlite.Open(w.Context(), h.path)
	w.ok(err)
	w.Cleanup(func() { w.ok(h.db.Close()) })
	h.records, err = sqlite.NewStore(w.Context(), h.db, clock.System{})
	w.ok(err)
	h.records.EncodeEvents(api.Published("https://sortie.example.org").Encode)
	feed, err := sqlite.NewFeed(w.Context(), h.db, sqlite.FeedConfig{Clock: clock.System{}, Retention: retention, Random: w.random.number})
	w.ok(err)
	h.feed = &signedFeed{Feed: feed}
	h.streams, err = sqlite.NewFeed(w.Context(), h.db, sqlite.FeedConfig{Clock: clock.System{}, Retention: retention, Forget: inference.StreamPrefix, Random: w.random.number})
	w.ok(err)
	w.ok(engine.Migrate(w.Context(), h.db))
	return h
}

func (h *onSQLite) store() port.Store { return h.records }

func (h *onSQLite) executions() port.Executions { return h.calls }

// lateEngine is the engine, which is created after the use cases that it calls.
type lateEngine struct{ *engine.Engine }

func (h *onSQLite) serve(*world, runs.Config) app.SystemTasks {
	return app.ServeTasks(h.streams, mocked, inferences.DispatcherConfig{ID: "dispatcher-1", Alone: true, Batch: 5 * time.Millisecond})
}

func (h *onSQLite) begin(w *world) {
	var err error
	h.calls.Engine, err = engine.New(w.Context(), engine.Config{
		DB: h.db, Clock: clock.System{}, Name: "run", Definition: w.machine(), Random: w.random.number, Invoke: w.invoke,
	})
	w.ok(err)
	go w.system.Dispatcher.Run(w.Context())
	<-w.system.Dispatcher.Ready()
	published := api.Published("https://sortie.example.org")
	published.Bare = true // as in the stack
	h.relays = delivery.NewRelay(h.feed, w.eventKeys, delivery.NoTurns{}, clock.System{}, w.log, published, series.Discard)
}

func (h *onSQLite) step() (time.Time, bool) {
	_, err := h.calls.Step(h.w.Context())
	h.w.ok(err)
	return h.calls.NextDue()
}

func (h *onSQLite) relay() {
	drained, err := h.relays.Drain(h.w.Context(), h.records, func(c port.StoredChange) delivery.Change {
		change := delivery.Change{ID: c.ID, At: c.At}
		change.Change, change.Err = sqlite.ChangeOf(c.Record)
		h.decoded += one(len(change.Events) > 0) // other changes have no record
		return change
	}, nil)
	h.w.ok(err)
	if drained.Left > 0 {
		h.w.Fatalf("the relay leaves %d changes", drained.Left)
	}
}

// settle exceeds the time for which results of functions are only in memory.
const settle = 5 * time.Second

func (h *onSQLite) read(c counts) {
	h.w.ok(clock.Sleep(h.w.Context(), clock.System{}, settle))
	h.step()
	s := h.db.Stats()
	c[commits], c[fsyncs], c[rows] = float64(s.Commits), float64(s.Commits-s.Relaxed), float64(s.Rows)
	c[encoded], c[decoded] = float64(s.Encoded), float64(s.Decoded)+float64(h.decoded)
	c[signatures] += float64(h.feed.signatures)
	log, err := os.Stat(h.path + "-wal")
	h.w.ok(err)
	c[bytesWritten] = float64(log.Size())
	var pages, free, size int64
	h.w.ok(h.db.Read(h.w.Context(), func(tx *sqlite.Tx) error {
		for query, into := range map[string]*int64{"PRAGMA page_count": &pages, "PRAGMA freelist_count": &free, "PRAGMA page_size": &size} {
			if err := tx.QueryRow(query).Scan(into); err != nil {
				return err
			}
		}
		return nil
	}))
	c[bytesKept] = float64((pages - free) * size)
}

// mocked returns an engine without a model.
func mocked(string, platform.EnginePlace, platform.EngineReplica) (port.Engine, error) {
	return mockengine.New(mockengine.Config{Clock: clock.System{}, Slots: 1, TokenEvery: 20 * time.Millisecond}), nil
}
