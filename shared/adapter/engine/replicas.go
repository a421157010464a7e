package engine

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Replicas has the engines of the replicas that a process uses. They keep their connections. It
// is safe for concurrent use.
type Replicas struct {
	clock    clock.Clock
	services Services
	mock     func(slots int) port.Engine
	mu       sync.Mutex
	known    map[string]port.Engine
}

// Services is how the engines of the kind openai are reached.
type Services struct {
	// Secrets has the keys.
	Secrets port.Secrets
	// Policy has the addresses that they may have. RootCAs replaces the certificates of the host
	// in tests.
	Policy  guard.Policy
	RootCAs *x509.CertPool
}

// NewReplicas returns Replicas without an engine. mock creates an engine of the kind mock.
func NewReplicas(c clock.Clock, services Services, mock func(slots int) port.Engine) *Replicas {
	return &Replicas{clock: c, services: services, mock: mock, known: map[string]port.Engine{}}
}

// Of returns the engine of a replica of a tenant's pool. Each call for the same replica returns
// the same engine.
func (r *Replicas) Of(tenant string, place platform.EnginePlace, of platform.EngineReplica) (port.Engine, error) {
	key := fmt.Sprintf("%s %s %s %d", place.Kind, of.URL, of.MetricsURL, place.Slots)
	switch place.Kind {
	case platform.EngineMock:
		key += " " + of.ID + " " + place.Model // pools of different models share no mock
	case platform.EngineOpenAI:
		key += " " + tenant + " " + place.SecretRef // nor do tenants, or pools with different keys, share a service
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
		cfg := Config{Kind: place.Kind, URL: of.URL, MetricsURL: of.MetricsURL, Slots: place.Slots, Clock: r.clock}
		if place.Kind == platform.EngineOpenAI {
			cfg.Policy, cfg.RootCAs, cfg.Key = r.services.Policy, r.services.RootCAs, r.services.key(tenant, place.SecretRef)
		}
		adapter, err := New(cfg)
		if err != nil {
			return nil, err
		}
		made = adapter
	}
	r.known[key] = made
	return made, nil
}

// key returns a function that reads the key of a service. Fault: PoolUnavailable.
func (s Services) key(tenant, name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		key, err := s.Secrets.Secret(ctx, tenant, name)
		switch {
		case errors.Is(err, port.ErrNotFound):
			f := fault.New(fault.PoolUnavailable, "the secret %q with the key of the pool does not exist", name)
			f.Retryable = false
			return "", f
		case err != nil:
			return "", fault.Wrap(err, fault.PoolUnavailable, "the secret %q with the key of the pool cannot be read now", name)
		}
		key = strings.TrimSpace(key) // editors end a file with a line feed
		if key == "" || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
			f := fault.New(fault.PoolUnavailable, "the secret %q is not a key, want printable ASCII without spaces", name)
			f.Retryable = false
			return "", f
		}
		return key, nil
	}
}
