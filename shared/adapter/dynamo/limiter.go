package dynamo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/port"
)

// StartLimiter implements port.Store.
func (s *Store) StartLimiter(ctx context.Context, pool string) (fleet.StartLimiter, error) {
	g := fleet.StartLimiter{Pool: pool}
	is, err := s.get(ctx, keyOf(limiters+pool, sortNote), true)
	if err == nil && is != nil {
		err = json.Unmarshal([]byte(textOf(is[attrDoc])), &g)
	}
	return g, wrap(err, "read the start limiter of pool", pool)
}

// SetStartLimiter implements port.Store.
func (s *Store) SetStartLimiter(ctx context.Context, g fleet.StartLimiter) error {
	p, err := limiterPart(g)
	if err == nil {
		err = s.write(ctx, []*part{p})
	}
	return wrap(err, "store the start limiter of pool", g.Pool)
}

// limiterPart returns the part that stores a limiter if its version is the stored one.
func limiterPart(g fleet.StartLimiter) (*part, error) {
	before := g.Version
	g.Version++
	doc, err := json.Marshal(g)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the start limiter of pool %s: %w", g.Pool, err)
	}
	put := keyOf(limiters+g.Pool, sortNote)
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
