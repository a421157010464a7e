// Package items stores the lists of items of runs with children, under the digests of their
// content. A list that several runs use is stored once.
package items

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/port"
)

const kind = "items"

// A list is kept for keepFor after its last use by a new run. A use renews it once in renewAfter.
// keepFor is longer than a run with children can wait and take.
const (
	keepFor    = 90 * 24 * time.Hour
	renewAfter = 24 * time.Hour
)

// cacheSize is the number of lists that a process keeps in memory, at most 2 MiB each.
const cacheSize = 4

// Lists are the lists of a store. It is safe for concurrent use.
type Lists struct {
	store port.ResourceStore
	clock clock.Clock
	mu    sync.Mutex
	// cached are the lists that were used last, the newest at the end.
	cached []list
}

type list struct {
	tenant, digest string
	items          []fan.Item
}

// part is the document of a part of a list.
type part struct {
	Items []fan.Item `json:"items"`
	// Parts is the number of parts of the list.
	Parts int `json:"parts"`
}

// New returns the lists of a store.
func New(store port.ResourceStore, c clock.Clock) *Lists { return &Lists{store: store, clock: c} }

// Save stores a list that fan.Check accepts, and returns its digest. It may be repeated.
func (s *Lists) Save(ctx context.Context, tenant string, items []fan.Item) (digest string, err error) {
	digest = fan.Digest(items)
	parts := fan.Parts(items)
	for n, each := range slices.Backward(parts) { // the first part is written last, so that it proves that all are stored
		if err := s.savePart(ctx, ref(tenant, digest, n), part{each, len(parts)}); err != nil {
			return "", fmt.Errorf("cannot store the items: %w", err)
		}
	}
	s.remember(list{tenant, digest, items})
	return digest, nil
}

// savePart stores a part, or renews the stored one.
func (s *Lists) savePart(ctx context.Context, at port.ResourceRef, p part) error {
	now := clock.UTC(s.clock)
	document, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("cannot encode items: %w", err)
	}
	for range port.CommitTries {
		stored, err := s.store.LoadResource(ctx, at)
		switch {
		case errors.Is(err, port.ErrNotFound):
			stored = port.Resource{ResourceRef: at, CreatedAt: now, Document: document}
		case err != nil:
			return err
		case stored.DueAt.Sub(now) > keepFor-renewAfter:
			return nil
		}
		stored.DueAt = now.Add(keepFor)
		if err := s.store.WriteResources(ctx, []port.Resource{stored}, nil); !errors.Is(err, port.ErrConflict) {
			return err
		}
	}
	return port.ErrConflict
}

// Load returns the list with a digest, or port.ErrNotFound. The caller must not change it.
func (s *Lists) Load(ctx context.Context, tenant, digest string) ([]fan.Item, error) {
	if found, ok := s.recall(tenant, digest); ok {
		return found, nil
	}
	var all []fan.Item
	for n, parts := 0, 1; n < parts; n++ {
		stored, err := s.store.LoadResource(ctx, ref(tenant, digest, n))
		if err != nil {
			return nil, fmt.Errorf("cannot read the items: %w", err)
		}
		var p part
		if err := json.Unmarshal(stored.Document, &p); err != nil {
			return nil, fmt.Errorf("cannot decode the items: %w", err)
		}
		all, parts = append(all, p.Items...), p.Parts
	}
	s.remember(list{tenant, digest, all})
	return all, nil
}

func (s *Lists) recall(tenant, digest string) ([]fan.Item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.cached {
		if l.tenant == tenant && l.digest == digest {
			return l.items, true
		}
	}
	return nil, false
}

func (s *Lists) remember(l list) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cached = append(s.cached, l)
	if len(s.cached) > cacheSize {
		s.cached = append([]list(nil), s.cached[1:]...)
	}
}

// Expire removes the parts of lists that were not used for a long time. It reads one page of at
// most most parts, and returns how many it found.
func (s *Lists) Expire(ctx context.Context, most int) (found int, err error) {
	due, _, err := s.store.ResourcesDue(ctx, kind, clock.UTC(s.clock), "", most)
	if err != nil {
		return 0, fmt.Errorf("cannot read the expired items: %w", err)
	}
	var failed []error
	for _, at := range due {
		stored, err := s.store.LoadResource(ctx, at)
		if err == nil && !stored.DueAt.After(clock.UTC(s.clock)) {
			err = s.store.WriteResources(ctx, nil, []port.Resource{stored})
		}
		if err != nil && !errors.Is(err, port.ErrNotFound) && !errors.Is(err, port.ErrConflict) {
			failed = append(failed, fmt.Errorf("cannot remove the items %s: %w", at.ID, err))
		}
	}
	return len(due), errors.Join(failed...)
}

func ref(tenant, digest string, n int) port.ResourceRef {
	return port.ResourceRef{Tenant: tenant, Kind: kind, ID: digest + "." + strconv.Itoa(n)}
}
