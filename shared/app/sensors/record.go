package sensors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

// shardDoc is the document of a shard.
type shardDoc struct {
	Seen []byte `json:"seen"`
}

func shardRef(of port.ResourceRef, shard int) port.ResourceRef {
	return port.ResourceRef{Tenant: of.Tenant, Kind: sensor.KindSeen, ID: of.ID + "." + strconv.Itoa(shard)}
}

// load reads the record of a sensor.
func (s *Polls) load(ctx context.Context, ref port.ResourceRef) (*memory, error) {
	m := &memory{}
	var err error
	if m.stored, err = s.store.LoadResource(ctx, ref); err != nil {
		return nil, fmt.Errorf("cannot read the sensor: %w", err)
	}
	if err := json.Unmarshal(m.stored.Document, &m.state); err != nil {
		return nil, fmt.Errorf("cannot decode the sensor: %w", err)
	}
	return m, nil
}

// loadSeen reads the shards of a sensor.
func (s *Polls) loadSeen(ctx context.Context, m *memory) (err error) {
	for n := range m.shards {
		ref := shardRef(m.stored.ResourceRef, n)
		m.shards[n], err = s.store.LoadResource(ctx, ref)
		if errors.Is(err, port.ErrNotFound) {
			m.shards[n] = port.Resource{ResourceRef: ref, CreatedAt: s.now()}
			continue
		}
		var doc shardDoc
		if err == nil {
			err = json.Unmarshal(m.shards[n].Document, &doc)
		}
		if err != nil {
			return fmt.Errorf("cannot read the objects that a sensor knows: %w", err)
		}
		m.seen.Load(n, doc.Seen)
	}
	return nil
}

// save stores the state, the changed shards, and when the next poll is due. It returns
// port.ErrConflict if another poll has stored them.
func (s *Polls) save(ctx context.Context, m *memory, due time.Time) error {
	document, err := json.Marshal(m.state)
	if err != nil {
		return fmt.Errorf("cannot encode a sensor: %w", err)
	}
	m.stored.Document, m.stored.DueAt = document, due
	write := []port.Resource{m.stored}
	for _, n := range m.seen.Changed() {
		if m.shards[n].Document, err = json.Marshal(shardDoc{m.seen.Bytes(n)}); err != nil {
			return fmt.Errorf("cannot encode a sensor: %w", err)
		}
		write = append(write, m.shards[n])
	}
	if err := s.store.WriteResources(ctx, write, nil); err != nil {
		return fmt.Errorf("cannot store the sensor: %w", err)
	}
	return nil
}

// remove removes the record and the shards of a job that does not exist.
func (s *Polls) remove(ctx context.Context, m *memory) error {
	gone := []port.Resource{m.stored}
	for _, shard := range m.shards {
		if shard.Version > 0 {
			gone = append(gone, shard)
		}
	}
	if err := s.store.WriteResources(ctx, nil, gone); err != nil {
		return fmt.Errorf("cannot remove a sensor: %w", err)
	}
	return nil
}
