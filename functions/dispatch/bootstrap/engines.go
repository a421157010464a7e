package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// mockToken is the time that a mock takes for each of its tokens.
const mockToken = 20 * time.Millisecond

// engines are the adapters of the replicas that this process uses. They keep their
// connections. It is safe for concurrent use.
type engines struct {
	clock clock.Clock
	mu    sync.Mutex
	known map[string]port.Engine
}

// newEngines returns no engines yet.
func newEngines(c clock.Clock) *engines { return &engines{clock: c, known: map[string]port.Engine{}} }

// of is an orchestrator.Engines. A mock is in the process, so that each dispatcher has its
// own.
func (e *engines) of(place run.EnginePlace, r run.EngineReplica) (port.Engine, error) {
	key := fmt.Sprintf("%s %s %s %s %d", place.Kind, r.ID, r.URL, r.MetricsURL, place.Slots)
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.known[key]; known != nil {
		return known, nil
	}
	var made port.Engine
	if place.Kind == run.EngineMock {
		made = mockengine.New(mockengine.Config{Clock: e.clock, Slots: place.Slots, TokenEvery: mockToken})
	} else {
		adapter, err := engine.New(engine.Config{Kind: place.Kind, URL: r.URL, MetricsURL: r.MetricsURL, Slots: place.Slots, Clock: e.clock})
		if err != nil {
			return nil, err
		}
		made = adapter
	}
	e.known[key] = made
	return made, nil
}
