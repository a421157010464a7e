package port

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/usage"
)

// ErrNoBudget is returned, as a *NoBudget, by a commit whose Ledger holds more than an account
// has left, or holds something of an expired or closed session. Nothing of the commit was
// applied.
var ErrNoBudget = errors.New("no budget left")

// AccountStore stores the accounts of budgets. A commit with Write.Ledger changes the held and
// spent amounts of accounts; see Store. The first commit that reserves an amount creates the
// account. A change that reserves nothing does nothing if the account does not exist. Reads are
// strongly consistent.
type AccountStore interface {
	// Account returns an account, or ErrNotFound.
	Account(ctx context.Context, tenant, scope string) (budget.Account, error)
	// PutLimit replaces the limit of an account and returns the account. It creates the account
	// if it does not exist; its version is then 0. It increments Version and leaves the rest.
	// The error is ErrConflict if version is not the stored one. Parts that are nil get the
	// default limit. at is the creation time of a new account. The notes are stored with the
	// limit.
	PutLimit(ctx context.Context, tenant, scope string, limit budget.Limit, version int64, at time.Time, notes ...Note) (budget.Account, error)
	// CloseAccount closes the account of a session: no later commit can reserve an amount of it,
	// even if its decision is older. An account without an expiry expires at that time. Runs that
	// have reserved an amount still settle it. The error is ErrNotFound for an unknown account, and
	// for one that is closed or has expired at that time.
	CloseAccount(ctx context.Context, tenant, scope string, at time.Time) error
}

// UsageStore stores what the tasks of tenants have used. A commit with Write.Ledger.Charge adds
// its entries in the same transaction, so that each charge is counted exactly once. An entry is
// deleted after usage.Retention.
type UsageStore interface {
	// Usage returns entries of a tenant from one day to another, inclusive, ordered by their id,
	// after the one with the id after, at most limit. sessions selects the entries of single
	// sessions, otherwise those of all sessions. Reads are strongly consistent.
	Usage(ctx context.Context, tenant, from, to string, sessions bool, after string, limit int) ([]usage.Entry, error)
}

// NoBudget names the account that made a commit fail, and what the account has left. It wraps
// ErrNoBudget.
type NoBudget struct{ budget.Shortage }

func (n *NoBudget) Error() string { return n.String() }

// Unwrap returns ErrNoBudget.
func (n *NoBudget) Unwrap() error { return ErrNoBudget }

// Fault returns the fault for the client: the session accepts no more tasks, or the budget is
// exhausted, or the key has had its requests of the minute. An exhausted budget is retryable only if
// unfinished tasks hold the missing amount.
func (n *NoBudget) Fault() *fault.Fault {
	if n.SessionClosed() {
		return fault.Wrap(n, fault.SessionClosed, "%s accepts no more tasks: %s", n.Scope, n.reason())
	}
	if name, ok := budget.RateOf(n.Scope); ok {
		return fault.Wrap(n, fault.Throttled, "the token %s has had its %d requests of this minute; retry in %d s", name, n.Limit, int(math.Ceil(n.Wait.Seconds())))
	}
	if pool, ok := budget.OfferOf(n.Scope); ok {
		f := fault.Wrap(n, fault.AdmissionReject, "the offer of the pool %s allows %d tokens a day in UTC, and %d of this day are left", pool, n.Limit, n.Left)
		f.Retryable = n.Held > 0
		return f
	}
	f := fault.Wrap(n, fault.AdmissionReject, "the budget does not allow this task: %s", n.Shortage)
	f.Retryable = n.Held > 0
	return f
}

func (n *NoBudget) reason() string {
	switch n.Part {
	case budget.Expired:
		return "it has expired"
	case budget.Closed:
		return "it was closed"
	}
	return "it has had all of its turns"
}

// Moves returns the changes of the writes to accounts, merged by account.
func Moves(writes []Write) (moves []budget.Move) {
	for _, w := range writes {
		moves = append(moves, w.Ledger.Moves(w.Run.Tenant)...)
	}
	return budget.Merge(moves)
}

// Charges returns the entries that the writes add to the usage of tenants, merged by name.
func Charges(writes []Write) (entries []usage.Entry) {
	for _, w := range writes {
		if w.Ledger != nil {
			entries = append(entries, w.Ledger.Charge.Entries(w.Run.Tenant)...)
		}
	}
	return usage.Merge(entries)
}
