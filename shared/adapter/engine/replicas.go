package engine

import (
	"fmt"
	"sync"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Replicas has the engines of the replicas that a process uses. They keep their connections. It
// is safe for concurrent use.
type Replicas struct {
	clock clock.Clock
	mock  func(slots int) port.Engine
	mu    sync.Mutex
	known map[string]port.Engine
}

// NewReplicas returns Replicas without an engine. mock creates an engine of the kind mock.
func NewReplicas(c clock.Clock, mock func(slots int) port.Engine) *Replicas {
	return &Replicas{clock: c, mock: mock, known: map[string]port.Engine{}}
}

// Of returns the engine of a replica. Each call for the same replica returns the same engine.
func (r *Replicas) Of(place platform.EnginePlace, of platform.EngineReplica) (port.Engine, error) {
	key := fmt.Sprintf("%s %s %s %d", place.Kind, of.URL, of.MetricsURL, place.Slots)
	if place.Kind == platform.EngineMock {
		key += " " + of.ID + " " + place.Model // pools of different models share no mock
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.known[key]; known != nil {
		return known, nil
	}
	var made port.Engine
	if place.Kind == platform.EngineMock {
		made = r.mock(place.Slots)
	} else {
		adapter, err := New(Config{Kind: place.Kind, URL: of.URL, MetricsURL: of.MetricsURL, Slots: place.Slots, Clock: r.clock})
		if err != nil {
			return nil, err
		}
		made = adapter
	}
	r.known[key] = made
	return made, nil
}
