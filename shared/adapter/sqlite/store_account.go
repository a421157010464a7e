package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/port"
)

// accountSteps are the migrations of the accounts of budgets; see DB.Migrate.
var accountSteps = []string{`
CREATE TABLE accounts (
	tenant   TEXT NOT NULL,
	scope    TEXT NOT NULL,
	purge_at INTEGER, -- NULL: never
	doc      BLOB NOT NULL,
	PRIMARY KEY (tenant, scope)
) STRICT, WITHOUT ROWID;
CREATE INDEX accounts_purge ON accounts (purge_at) WHERE purge_at IS NOT NULL;
`}

// Account implements port.AccountStore.
func (s *Store) Account(ctx context.Context, tenant, scope string) (a budget.Account, err error) {
	err = s.db.Read(ctx, func(tx *Tx) (err error) {
		var known bool
		if a, known, err = account(tx, tenant, scope); err == nil && !known {
			err = port.ErrNotFound
		}
		return err
	})
	return a, wrap(err, "read the account", scope)
}

// PutLimit implements port.AccountStore.
func (s *Store) PutLimit(
	ctx context.Context, tenant, scope string, limit budget.Limit, version int64, at time.Time, notes ...port.Note,
) (a budget.Account, err error) {
	err = s.write(ctx, notes, func(tx *Tx) error {
		var known bool
		if a, known, err = account(tx, tenant, scope); err != nil {
			return err
		}
		if !known {
			a = budget.Account{Tenant: tenant, Scope: scope, CreatedAt: at}
		}
		if a.Version != version {
			return port.ErrConflict
		}
		a.Limit = limit
		a.Version++
		return saveAccount(tx, a)
	})
	return a, wrap(err, "store the limit of", scope)
}

// CloseAccount implements port.AccountStore.
func (s *Store) CloseAccount(ctx context.Context, tenant, scope string, at time.Time) error {
	return wrap(s.db.Write(ctx, func(tx *Tx) error {
		a, known, err := account(tx, tenant, scope)
		if err != nil {
			return err
		}
		if !known || !a.Open(at) {
			return port.ErrNotFound
		}
		if a.Closed = true; a.ExpiresAt.IsZero() {
			a.ExpiresAt = at
		}
		return saveAccount(tx, a)
	}), "close the account", scope)
}

func account(tx *Tx, tenant, scope string) (a budget.Account, known bool, err error) {
	var doc []byte
	err = tx.QueryRow("SELECT doc FROM accounts WHERE tenant = ? AND scope = ?", tenant, scope).Scan(&doc)
	switch {
	case errors.Is(err, ErrNoRow):
		return a, false, nil
	case err == nil:
		err = json.Unmarshal(doc, &a)
	}
	return a, true, err
}

func saveAccount(tx *Tx, a budget.Account) error {
	doc, err := encode(&a)
	if err != nil {
		return fmt.Errorf("cannot encode the account %s: %w", a.Scope, err)
	}
	_, err = tx.Exec(`INSERT INTO accounts (tenant, scope, purge_at, doc) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET purge_at = excluded.purge_at, doc = excluded.doc`, a.Tenant, a.Scope, moment(a.PurgeAt()), doc)
	return err
}

// moveAccounts applies the ledger changes of a commit, after its other writes.
func moveAccounts(tx *Tx, writes ...port.Write) error {
	for _, m := range port.Moves(writes) {
		a, known, err := account(tx, m.Tenant, m.Scope)
		if err != nil {
			return err
		}
		if !known && !m.Holds() {
			continue
		}
		if !known {
			a = m.New()
		}
		after, short := m.Apply(a)
		if short != nil {
			return &port.NoBudget{Shortage: *short}
		}
		if err := saveAccount(tx, after); err != nil {
			return err
		}
	}
	return addUsage(tx, port.Charges(writes))
}
