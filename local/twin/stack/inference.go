package stack

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"

	"github.com/sortie-dev/sortie/shared/port"
)

// EngineAddress is an inference server.
type EngineAddress struct {
	Kind platform.EngineKind
	// URL is the address of the server; empty for platform.EngineMock.
	URL string
}

// tokenBatch is the time for which tokens are collected for one append.
const tokenBatch = 5 * time.Millisecond

// wireTasks opens the streams of inference tasks, which this process serves.
func (s *Stack) wireTasks(ctx context.Context, engines *engine.Replicas) (app.SystemTasks, error) {
	// Keep a stream as long as the record of its task.
	feed, err := sqlite.NewFeed(ctx, s.db, sqlite.FeedConfig{Clock: s.clock, Retention: s.config.Settings.Service.Policy.RecordRetention, Forget: inference.StreamPrefix})
	if err != nil {
		return app.SystemTasks{}, fmt.Errorf("cannot open the streams of tasks: %w", err)
	}
	// One process owns the folder, so tasks of an earlier dispatcher are lost.
	return app.ServeTasks(feed, engines.Of, inferences.DispatcherConfig{
		ID: "dispatcher-" + randomHex(8), Alone: true, Batch: tokenBatch,
	}), nil
}

// wireEngines creates the pools of the configured engines.
func (s *Stack) wireEngines(ctx context.Context, engines *engine.Replicas) error {
	var kinds []platform.EngineKind
	byKind := map[platform.EngineKind][]EngineAddress{}
	for _, a := range s.config.Engines {
		if byKind[a.Kind] == nil {
			kinds = append(kinds, a.Kind)
		}
		byKind[a.Kind] = append(byKind[a.Kind], a)
	}
	for i, kind := range kinds {
		if err := s.enginePool(ctx, engines, fmt.Sprintf("pool%d", i), kind, byKind[kind]); err != nil {
			return err
		}
	}
	return nil
}

// enginePool creates or changes the pool with the servers of a kind.
func (s *Stack) enginePool(ctx context.Context, engines *engine.Replicas, id string, kind platform.EngineKind, of []EngineAddress) error {
	place := platform.EnginePlace{Kind: kind}
	for _, a := range of {
		place.Replicas = append(place.Replicas, platform.EngineReplica{URL: a.URL})
	}
	place = place.WithIDs()
	first, err := engines.Of(s.memory.Tenant, place, place.Replicas[0])
	if err != nil {
		return fmt.Errorf("--engine %s: %w", kind, err)
	}
	found, err := first.Capabilities(ctx)
	if err != nil {
		return fmt.Errorf("--engine %s=%s: the server does not say what it serves; start it first: %w", kind, of[0].URL, err)
	}
	from := "the server"
	if found.Slots == 0 {
		found.Slots, from = kind.DefaultSlots(), "it does not say"
	}
	place.Slots = found.Slots
	if place.Model = string(kind); len(found.Models) > 0 {
		place.Model = modelID(found.Models[0])
	}
	if err := s.catalogModel(ctx, place, found); err != nil {
		return err
	}
	s.addresses.Models, s.addresses.ModelSlots = append(s.addresses.Models, place.Model), append(s.addresses.ModelSlots, place.Limit())
	s.config.Log.InfoContext(ctx, "an inference server is in use", "pool", id, "engine", string(kind), "model", place.Model,
		"replicas", len(place.Replicas), "slots", place.Slots, "slots_from", from)
	pool, err := s.store.LoadPool(ctx, platform.PoolRef{Tenant: s.memory.Tenant, ID: id})
	if errors.Is(err, port.ErrNotFound) {
		pool, err = platform.Pool{Tenant: s.memory.Tenant, ID: id}, nil
	}
	if err != nil {
		return fmt.Errorf("cannot read pool %s: %w", id, err)
	}
	if pool.Engine != nil {
		place.Loads = pool.Engine.Loads
	}
	s.system.Dispatcher.Describe(ctx, platform.Pool{Tenant: pool.Tenant, ID: id, Engine: &place})
	if pool.Engine != nil && pool.Limit == place.Limit() && reflect.DeepEqual(*pool.Engine, place) {
		return nil
	}
	pool.Engine = &place
	if err := s.store.SavePool(ctx, pool.Resized(place.Limit(), pool.QueueLimit, "localhost", s.clock.Now())); err != nil {
		return fmt.Errorf("cannot save pool %s: %w", id, err)
	}
	return nil
}

// catalogModel adds the model of a server to the catalog if it is missing. The entry does not
// set the context length, because the server can be restarted with another.
func (s *Stack) catalogModel(ctx context.Context, place platform.EnginePlace, found port.EngineCapabilities) error {
	operator := port.Identity{Tenant: s.memory.Tenant, Subject: "localhost"}
	_, err := s.system.Models.Model(ctx, operator, place.Model)
	if !fault.Is(err, fault.ModelUnknown) {
		return err
	}
	d := catalog.Definition{Engines: []platform.EngineKind{place.Kind}, Workloads: found.Workloads, Price: catalog.Price{Output: catalog.DefaultOutputPrice}}
	if len(found.Models) > 0 {
		d.EngineModel = found.Models[0]
	}
	if _, _, err := s.system.Models.Create(ctx, operator, place.Model, d, false); err != nil {
		return fmt.Errorf("cannot add the model %s of --engine %s to the catalog: %w", place.Model, place.Kind, err)
	}
	return nil
}

// modelID returns a model id for the engine's name of the model, such as a file path.
func modelID(name string) string {
	name = strings.TrimSuffix(path.Base(name), ".gguf")
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
}

// mockSlots is the minimum number of concurrent tasks of a mock. mockToken is its time per
// token.
const (
	mockSlots = 4
	mockToken = 20 * time.Millisecond
)

func (s *Stack) mock(slots int) port.Engine {
	return mockengine.New(mockengine.Config{Clock: s.clock, Slots: max(slots, mockSlots), TokenEvery: mockToken})
}
