package dynamo

import "context"

// claimTable is the attribute with the name of the claimed table. A restored table has
// the item of its source and another name.
const claimTable = "table"

// Claim implements port.Store.
func (s *Store) Claim(ctx context.Context) error {
	note := keyOf(claim, sortNote)
	note[claimTable] = text(s.config.Table)
	return wrap(s.send(ctx, []*part{{put: note}}), "store", "the claim of the table")
}

// Claimed implements port.Store.
func (s *Store) Claimed(ctx context.Context) (bool, error) {
	is, err := s.get(ctx, keyOf(claim, sortNote), true)
	return textOf(is[claimTable]) == s.config.Table, wrap(err, "read", "the claim of the table")
}
