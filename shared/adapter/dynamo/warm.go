package dynamo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

func warmKey(w platform.WarmMachine) item { return keyOf(pkWarm(w.Tenant, w.Pool), sortWarm+w.ID) }

// WarmMachines implements port.Store.
func (s *Store) WarmMachines(ctx context.Context, ref platform.PoolRef) (found []platform.WarmMachine, err error) {
	query := s.queryPrefix(pkWarm(ref.Tenant, ref.ID), sortWarm)
	query.ConsistentRead = aws.Bool(true)
	var malformed error
	err = s.each(ctx, query, func(is item) bool {
		var w platform.WarmMachine
		if malformed = json.Unmarshal([]byte(textOf(is[attrDoc])), &w); malformed != nil {
			return false
		}
		found = append(found, w)
		return true
	})
	if err == nil && malformed != nil {
		err = fmt.Errorf("cannot decode a warm machine: %w", malformed)
	}
	return found, wrap(err, "read the warm machines of pool", ref.ID)
}

// SaveWarm implements port.Store.
func (s *Store) SaveWarm(ctx context.Context, w platform.WarmMachine) error {
	p, err := warmPart(w)
	if err == nil {
		wanted := textOf(p.put[attrDoc])
		p.refused = func(_ context.Context, is item) error {
			if textOf(is[attrDoc]) == wanted {
				return errApplied
			}
			return &port.Conflict{}
		}
		err = s.retryOutdated(ctx, func() error { return s.write(ctx, []*part{p}) })
	}
	return wrap(err, "store warm machine", w.ID)
}

// DeleteWarm implements port.Store.
func (s *Store) DeleteWarm(ctx context.Context, w platform.WarmMachine) error {
	p := &part{key: warmKey(w), remove: true, refused: func(_ context.Context, is item) error {
		if is == nil {
			return errApplied
		}
		return port.ErrConflict
	}}
	p.where(attrVersion, "=", number(w.Version))
	return wrap(s.retryOutdated(ctx, func() error { return s.write(ctx, []*part{p}) }), "delete warm machine", w.ID)
}

// warmPart returns the part that stores a warm machine if its version is the stored one.
func warmPart(w platform.WarmMachine) (*part, error) {
	before := w.Version
	w.Version++
	doc, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("cannot encode warm machine %s: %w", w.ID, err)
	}
	put := warmKey(w)
	put[attrVersion], put[attrDoc] = number(w.Version), text(string(doc))
	return replaceVersion(put, before), nil
}
