package dynamo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// StartGate implements port.Store.
func (s *Store) StartGate(ctx context.Context, pool string) (run.StartGate, error) {
	g := run.StartGate{Pool: pool}
	is, err := s.get(ctx, keyOf(gates+pool, sortNote), true)
	if err == nil && is != nil {
		err = json.Unmarshal([]byte(textOf(is[attrDoc])), &g)
	}
	return g, wrap(err, "read the start gate of pool", pool)
}

// SetStartGate implements port.Store.
func (s *Store) SetStartGate(ctx context.Context, g run.StartGate) error {
	p, err := gatePart(g)
	if err == nil {
		err = s.write(ctx, []*part{p})
	}
	return wrap(err, "store the start gate of pool", g.Pool)
}

// gatePart returns the part that stores a gate if its version is the stored one.
func gatePart(g run.StartGate) (*part, error) {
	before := g.Version
	g.Version++
	doc, err := json.Marshal(g)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the start gate of pool %s: %w", g.Pool, err)
	}
	put := keyOf(gates+g.Pool, sortNote)
	put[attrVersion], put[attrDoc] = number(g.Version), text(string(doc))
	return replaceVersion(put, before), nil
}

// replaceVersion returns the part that stores an item if the stored version is before. 0 means
// that no item is stored.
func replaceVersion(put item, before int64) *part {
	p := &part{put: put, refused: func(context.Context, item) error { return &port.Conflict{} }}
	if before == 0 {
		p.absent(schema.Partition.Name)
	} else {
		p.where(attrVersion, "=", number(before))
	}
	return p
}
