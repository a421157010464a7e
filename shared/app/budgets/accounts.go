// Package budgets serves the budgets of tenants, projects and sessions, which limit inference
// tasks. Their accounts change with the commits of the tasks; clients read them, set limits, and
// close sessions. The package imports no other use case.
package budgets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Answering has the answers that dispatchers generate now.
type Answering interface {
	// GeneratesFor reports whether an engine has sent a part of an unfinished answer of a session
	// to a dispatcher of this process.
	GeneratesFor(tenant, session string) bool
}

// Store stores the accounts of budgets, and usage.
type Store interface {
	port.AccountStore
	port.UsageStore
}

// Accounts serves the sessions of inference tasks, the budgets of tenants, projects and sessions,
// and what was used. It is safe for concurrent use.
type Accounts struct {
	store     Store
	answering Answering
	clock     clock.Clock
	document  func(a budget.Account) ([]byte, error)
	defaults  budget.Defaults
}

// NewAccounts returns the accounts in a store. document encodes the limit of an account as
// clients see it. defaults are the limits of accounts without their own; nil is
// budget.Standard.
func NewAccounts(
	store Store, answering Answering, c clock.Clock, document func(a budget.Account) ([]byte, error), defaults *budget.Defaults,
) *Accounts {
	return &Accounts{store, answering, c, document, budget.OrStandard(defaults)}
}

func (s *Accounts) now() time.Time { return clock.UTC(s.clock) }

// Defaults returns the limits of accounts without their own.
func (s *Accounts) Defaults() budget.Defaults { return s.defaults }

// budgetKind is the kind of the resources of budgets in events.
const budgetKind = "quota"

func noSession() error {
	return fault.New(fault.NotFound, "no such session: its first task or its first limit creates it, and it is removed when it expires")
}

// Session returns the account of an open session of the caller's tenant. It does not check the
// limits. Fault: NotFound, also for a session that has expired or was deleted.
func (s *Accounts) Session(ctx context.Context, who port.Identity, id string) (budget.Account, error) {
	if !limit.ValidModel(id) {
		return budget.Account{}, noSession()
	}
	a, err := s.store.Account(ctx, who.Tenant, budget.SessionScope(id))
	switch {
	case errors.Is(err, port.ErrNotFound), err == nil && !a.Open(s.now()):
		return budget.Account{}, noSession()
	case err != nil:
		return budget.Account{}, fmt.Errorf("cannot read the session: %w", err)
	}
	return a, nil
}

// Warm reports whether an engine has generated a token for the session of an account. An
// unfinished answer counts only in the process of its dispatcher.
func (s *Accounts) Warm(who port.Identity, a budget.Account) bool {
	session, _ := budget.SessionOf(a.Scope)
	return a.Spent.Tokens > 0 || s.answering.GeneratesFor(who.Tenant, session)
}

// DeleteSession closes a session: it accepts no more tasks. Accepted tasks continue. The id can
// be used again budget.Retention after its expiry. Fault: NotFound as for Session.
func (s *Accounts) DeleteSession(ctx context.Context, who port.Identity, id string) error {
	if _, err := s.Session(ctx, who, id); err != nil {
		return err
	}
	err := s.store.CloseAccount(ctx, who.Tenant, budget.SessionScope(id), s.now())
	if errors.Is(err, port.ErrNotFound) {
		return noSession()
	}
	if err != nil {
		return fmt.Errorf("cannot delete the session: %w", err)
	}
	return nil
}

// mostProject is the maximum length of a project id in bytes.
const mostProject = 128

// ownKey is the scope of the budget of the caller's token.
const ownKey = "key"

// ofKey returns the account of the caller's token in the current period, with the limit of the
// token. Fault: NotFound for a caller without such a budget.
func (s *Accounts) ofKey(ctx context.Context, who port.Identity) (budget.Account, error) {
	allowance := who.Grant.Budget
	if allowance == nil || who.Key == "" {
		return budget.Account{}, fault.New(fault.NotFound, "the token has no budget of its own")
	}
	scope := budget.KeyScope(who.Key, allowance.Period, s.now())
	a, err := s.store.Account(ctx, who.Tenant, scope)
	if errors.Is(err, port.ErrNotFound) {
		a, err = budget.Account{Tenant: who.Tenant, Scope: scope}, nil
	}
	if err != nil {
		return a, fmt.Errorf("cannot read the budget: %w", err)
	}
	a.Limit = allowance.Limit()
	return a, nil
}

// Budget returns the account of a scope of the caller's tenant: budget.ScopeTenant, a
// project, a session, or ownKey. A tenant or a project without an account has used nothing. Faults:
// InvalidRequest for a malformed scope, NotFound as for Session.
func (s *Accounts) Budget(ctx context.Context, who port.Identity, scope string) (budget.Account, error) {
	if id, ok := budget.SessionOf(scope); ok {
		return s.Session(ctx, who, id)
	}
	if scope == ownKey {
		return s.ofKey(ctx, who)
	}
	if id, ok := budget.ProjectOf(scope); scope != budget.ScopeTenant && (!ok || id == "" || len(id) > mostProject || strings.Contains(id, "/")) {
		return budget.Account{}, fault.Invalid("scope", "malformed scope %q, want tenant, project:ID, session:ID or key", limit.Cut(scope, limit.FileName))
	}
	a, err := s.store.Account(ctx, who.Tenant, scope)
	if errors.Is(err, port.ErrNotFound) {
		return budget.Account{Tenant: who.Tenant, Scope: scope}, nil
	}
	if err != nil {
		return budget.Account{}, fmt.Errorf("cannot read the budget: %w", err)
	}
	return a, nil
}

// PutBudget replaces the limit of a scope, and returns its account. A nil part has the default
// limit from then on. Admitted tasks continue. A session can get a limit before its first task;
// its expiry counts from that task. Faults as for Budget, and InvalidRequest with the field of
// a limit.
func (s *Accounts) PutBudget(ctx context.Context, who port.Identity, scope string, l budget.Limit) (budget.Account, error) {
	for i, part := range l.Values() {
		if part != nil && (*part < 0 || *part > budget.MostLimit) {
			return budget.Account{}, fault.Invalid(limitFields[i], "%d is out of range, want 0 to %d", *part, int64(budget.MostLimit))
		}
	}
	for range port.CommitTries {
		before, err := s.accountForLimit(ctx, who, scope)
		if err != nil {
			return budget.Account{}, err
		}
		now := s.now()
		note, err := s.note(ctx, who, before, l, now)
		if err != nil {
			return budget.Account{}, err
		}
		stored, err := s.store.PutLimit(ctx, who.Tenant, scope, l, before.Version, now, note)
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			return budget.Account{}, fmt.Errorf("cannot store the budget: %w", err)
		}
		return stored, nil
	}
	return budget.Account{}, fault.New(fault.Unavailable, "too many concurrent changes of the budget; retry")
}

// accountForLimit does the same as Budget, but returns an empty account for a session without
// one.
func (s *Accounts) accountForLimit(ctx context.Context, who port.Identity, scope string) (budget.Account, error) {
	id, ok := budget.SessionOf(scope)
	if scope == ownKey {
		return budget.Account{}, fault.Invalid("scope", "the limit of a key is that of its token, want tenant, project:ID or session:ID")
	}
	if !ok {
		return s.Budget(ctx, who, scope)
	}
	if !limit.ValidModel(id) {
		return budget.Account{}, fault.Invalid("scope", "malformed session id %q, want 1 to 128 letters, digits, '.', '_', ':', '@' and '-', the first a letter or a digit", limit.Cut(id, limit.FileName))
	}
	a, err := s.store.Account(ctx, who.Tenant, scope)
	switch {
	case errors.Is(err, port.ErrNotFound):
		return budget.Account{Tenant: who.Tenant, Scope: scope}, nil
	case err != nil:
		return budget.Account{}, fmt.Errorf("cannot read the session: %w", err)
	case !a.Open(s.now()):
		return budget.Account{}, noSession()
	}
	return a, nil
}

// note returns the event for a changed limit.
func (s *Accounts) note(ctx context.Context, who port.Identity, before budget.Account, l budget.Limit, now time.Time) (note port.Note, err error) {
	after := before
	after.Limit = l
	if after.CreatedAt.IsZero() {
		after.CreatedAt = now
	}
	c := change.Resource{
		Tenant: who.Tenant, Kind: budgetKind, ID: before.Scope, Version: before.Version + 1, Revision: before.Version + 1, Created: after.CreatedAt,
	}
	if before.Version > 0 {
		c.Before, err = s.document(before)
	}
	if err == nil {
		c.After, err = s.document(after)
	}
	if err != nil {
		return note, fmt.Errorf("cannot encode the budget: %w", err)
	}
	return c.Note(ctx, who.Actor(), now)
}

// limitFields are the client's names of the parts of a limit, in the order of
// budget.Limit.Values.
var limitFields = [...]string{"turns", "tokens", "time_ms", "cost_nanodollars"}
