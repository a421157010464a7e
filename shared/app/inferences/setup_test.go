package inferences_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/prompts"
	"github.com/sortie-dev/sortie/shared/app/runs"
	systemclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

var client = port.Identity{Tenant: "local", Workspace: "local", Subject: "localhost"}

// inferring runs inference tasks on SQLite with mock engines. Its clock moves only when a
// test moves it; a batch of tokens is appended at the latest when the answer ends.
type inferring struct {
	*testing.T
	clock     *systemclock.Virtual
	store     port.Store
	feed      port.AnswerFeed
	outputs   *fake.Outputs
	engines   map[string]*mockengine.Engine
	wrap      func(port.Engine) port.Engine // nil uses the mocks unchanged
	tasks     *inferences.Inference
	artifacts *artifacts.Registry
	prompts   *prompts.Store
	requests  *runs.Requests
	models    *artifacts.Models
	pools     *pools.Pools
	sweeper   *inferences.Dispatcher
	explains  *jobs.Explanations
	tally     porttest.Tally
	log       slog.Handler
	path      string // of the database
	close     func() error
	stop      func()
}

// newInferring starts a dispatcher and creates the pool "pool0" of mock engines with the
// replicas r1, r2 and so on.
func newInferring(t *testing.T, replicas, slots int, change ...func(*inferring)) *inferring {
	t.Helper()
	h := &inferring{T: t, clock: systemclock.NewVirtual(epoch), engines: map[string]*mockengine.Engine{}, log: slog.DiscardHandler}
	h.path = filepath.Join(sqlitetest.Folder(t), "sortie.db")
	h.open()
	t.Cleanup(func() { _ = h.close() })
	h.outputs = fake.NewOutputs(h.clock, nil)
	place := platform.EnginePlace{Kind: platform.EngineMock, Model: "mock", Slots: slots, Replicas: make([]platform.EngineReplica, replicas)}.WithIDs()
	for _, r := range place.Replicas {
		h.engines[r.ID] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: slots})
	}
	_, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
	if errors.Is(err, port.ErrNotFound) {
		err = h.store.SavePool(t.Context(), platform.Pool{Tenant: client.Tenant, ID: "pool0", Limit: place.Limit(), QueueLimit: 1000, Engine: &place})
	}
	h.ok(err)
	for _, c := range change {
		c(h)
	}
	h.restart()
	t.Cleanup(func() { h.stop() })
	return h
}

// open opens the database.
func (h *inferring) open() {
	h.Helper()
	db, err := sqlitetest.Open(h.Context(), h.path)
	h.ok(err)
	h.close = db.Close
	h.store, err = sqlite.NewStore(h.Context(), db, h.clock)
	h.ok(err)
	h.feed, err = sqlite.NewFeed(h.Context(), db, sqlite.FeedConfig{Clock: h.clock, Retention: 24 * time.Hour})
	h.ok(err)
}

// restart stops the dispatcher as a crash does, and starts another one.
func (h *inferring) restart() {
	h.Helper()
	if h.stop != nil {
		h.stop()
	}
	config := runs.Config{
		Policy: spec.Policy{RecordRetention: 48 * time.Hour, OutputRetention: 24 * time.Hour, Retry: spec.Retry{InitialDelay: time.Second, Multiplier: 2, MaxDelay: time.Minute}},
		Pool:   "default", MockEngine: true,
	}
	random := func(n int) string {
		b := make([]byte, n)
		_, _ = rand.Read(b)
		return hex.EncodeToString(b)
	}
	records := runs.NewRecords(h.store, h.clock, slog.New(h.log))
	h.models = artifacts.NewModels(h.store, h.clock, slog.New(h.log), api.ModelDocument, config.ModelKeys)
	h.artifacts = artifacts.NewRegistry(h.store, h.outputs, h.clock, slog.New(h.log), random, config.Policy.RecordRetention, config.ArtifactLimit)
	h.prompts = prompts.New(h.store, h.outputs, h.clock)
	dispatcher, requests := app.NewDispatcher(app.TasksOnly(records, config), random, h.feed, h.models, h.artifacts, h.prompts, func(_ string, _ platform.EnginePlace, r platform.EngineReplica) (port.Engine, error) {
		if h.wrap != nil {
			return h.wrap(h.engines[r.ID]), nil
		}
		return h.engines[r.ID], nil
	}, h.tally.Record, inferences.DispatcherConfig{ID: "dispatcher-" + random(4), Alone: true, Batch: 5 * time.Millisecond}, config)
	h.requests = requests
	h.sweeper, h.tasks = dispatcher, dispatcher.Inference
	h.pools = app.Pools(requests.Lifecycle, api.PoolDocument, h.sweeper, h.tally.Record, config)
	h.explains = jobs.NewExplanations(app.Definitions(runs.NewRuns(requests, h.outputs), config))
	ctx, cancel := context.WithCancel(h.Context())
	var running sync.WaitGroup
	ready := h.sweeper.Ready()
	running.Go(func() { h.sweeper.Run(ctx) })
	<-ready
	h.stop = func() { cancel(); running.Wait() }
}

func (h *inferring) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// ask creates a task with a number of tokens.
func (h *inferring) ask(tokens int, change ...func(*inferences.NewTask)) string {
	h.Helper()
	in := inferences.NewTask{
		Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count to ten"}, MaxTokens: tokens,
	}
	for _, c := range change {
		c(&in)
	}
	accepted, err := h.tasks.Create(h.Context(), in)
	h.ok(err)
	return accepted.Run.TaskID
}

// read returns the events of a stream behind an id until its end.
func (h *inferring) read(task string, after inference.EventID) (events []inference.Event) {
	h.Helper()
	err := h.tasks.Follow(h.Context(), client, task, after, func(run.Run) error { return nil }, func(found []inference.Event) error {
		events = append(events, found...)
		return nil
	})
	if !errors.Is(err, inferences.ErrAllRead) {
		h.ok(err)
	}
	return events
}

func names(events []inference.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Name[:1])
	}
	return b.String()
}

// ended returns a run that has ended; the dispatcher commits that after the stream's end.
func (h *inferring) ended(task string) run.Run {
	h.Helper()
	for {
		r, err := h.store.Find(h.Context(), client.Tenant, task)
		h.ok(err)
		if r.State.Terminal() {
			return r
		}
		h.ok(h.sweeper.Await(h.Context(), r))
	}
}

// seen waits for an event with a name in the stream of a task.
func (h *inferring) seen(task, name string) {
	h.Helper()
	found := errors.New("found")
	err := h.tasks.Follow(h.Context(), client, task, inference.EventID{}, func(run.Run) error { return nil }, func(events []inference.Event) error {
		for _, e := range events {
			if e.Name == name {
				return found
			}
		}
		return nil
	})
	if !errors.Is(err, found) {
		h.Fatalf("the stream ended (%v) without an event %s", err, name)
	}
}

// passes advances the clock by step in each millisecond of the host, until stop is called.
func (h *inferring) passes(step time.Duration) (stop func()) {
	over := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				h.clock.Advance(step)
			}
		}
	})
	return func() { close(over); passing.Wait() }
}
