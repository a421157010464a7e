package fake

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/usage"
	"github.com/sortie-dev/sortie/shared/port"
)

// Account implements port.AccountStore.
func (s *Store) Account(ctx context.Context, tenant, scope string) (budget.Account, error) {
	return ask(s, "Account", false, func() (budget.Account, error) { return s.inner.Account(ctx, tenant, scope) })
}

// PutLimit implements port.AccountStore.
func (s *Store) PutLimit(
	ctx context.Context, tenant, scope string, limit budget.Limit, version int64, at time.Time, notes ...port.Note,
) (budget.Account, error) {
	if tenant == "" || scope == "" || at.IsZero() {
		s.witness.report(fmt.Errorf("misuse: limit of the account %q without a tenant, a scope or a time", scope))
	}
	return ask(s, "PutLimit", true, func() (budget.Account, error) {
		return s.inner.PutLimit(ctx, tenant, scope, limit, version, at, notes...)
	})
}

// CloseAccount implements port.AccountStore.
func (s *Store) CloseAccount(ctx context.Context, tenant, scope string, at time.Time) error {
	if _, ok := budget.SessionOf(scope); !ok || at.IsZero() {
		s.witness.report(fmt.Errorf("misuse: close of the account %q, which is not one of a session, or without a time", scope))
	}
	return s.call(context.Background(), "CloseAccount", "", true, func() error { return s.inner.CloseAccount(ctx, tenant, scope, at) })
}

// Usage implements port.UsageStore.
func (s *Store) Usage(ctx context.Context, tenant, from, to string, sessions bool, after string, limit int) ([]usage.Entry, error) {
	if tenant == "" || from == "" || to < from || limit <= 0 {
		s.witness.report(fmt.Errorf("misuse: usage of the tenant %q from %q to %q, at most %d entries", tenant, from, to, limit))
	}
	return ask(s, "Usage", false, func() ([]usage.Entry, error) { return s.inner.Usage(ctx, tenant, from, to, sessions, after, limit) })
}

// balances checks that the ledger change is the difference between the two reservations.
func balances(before, after *run.Reservation, c *budget.Change, misuse func(string, ...any)) {
	if c != nil && c.Charge != nil && c.Charge.Key == usage.KeyShadow {
		if len(c.Scopes) > 0 || before != after {
			misuse("with the charge %+v of shadow traffic, which changes no account", c)
		}
		return
	}
	var was, is run.Reservation
	if before != nil {
		was = *before
	}
	if after != nil {
		is = *after
	}
	var held, used budget.Amount
	var charge usage.Sum
	if c != nil {
		held, used = c.Hold.Minus(c.Release), c.Spend
		if c.Charge != nil {
			charge = c.Charge.Sum
		}
		if len(c.Scopes) != len(is.Scopes) || c.At.IsZero() {
			misuse("with a ledger change of the accounts %q, want %q and a time", c.Scopes, is.Scopes)
		}
	}
	if c != nil && c.Charge != nil && (charge.Tasks != used.Turns || charge.TimeMS != used.TimeMS || charge.CostNano != used.CostNano ||
		was.UsedTokens.Plus(charge.Tokens) != is.UsedTokens) {
		misuse("with the charge %+v, but a change of the accounts by %+v", charge, used)
	}
	if was.Held.Plus(held) != is.Held || was.Used.Plus(used) != is.Used {
		misuse("with the ledger change %+v, but its reservation changes from %+v to %+v", c, was, is)
	}
}
