package port

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/budget"
	"github.com/sortie-dev/sortie/shared/fault"
)

// ErrNoBudget is returned by a commit whose Ledger holds more than an account has left, or
// something of an expired or closed session, as a *NoBudget. Nothing of the commit was applied.
var ErrNoBudget = errors.New("no budget left")

// AccountStore stores the accounts of budgets. Commits change what an account holds and has
// spent, by Write.Ledger; see Store. The first commit that holds something of an account
// creates it. A change of an account that does not exist is nothing, unless it holds.
// Reads are strongly consistent.
type AccountStore interface {
	// Account returns an account, or ErrNotFound.
	Account(ctx context.Context, tenant, scope string) (budget.Account, error)
	// PutLimit replaces the limit of an account that has a version, creates the account if
	// it does not exist, and returns it. It raises Version by one and leaves the rest. The
	// error is ErrConflict for another version; an account that does not exist has 0. Parts
	// that are nil get the default limit. at is the creation time of a new account. The
	// notes are stored with the limit.
	PutLimit(ctx context.Context, tenant, scope string, limit budget.Limit, version int64, at time.Time, notes ...Note) (budget.Account, error)
	// CloseAccount closes the account of a session: no later commit holds something of it,
	// also none that was decided before. One that does not expire expires at that time. Runs that hold something settle it. The error is
	// ErrNotFound for an unknown account, and for one that is closed or has expired at that
	// time.
	CloseAccount(ctx context.Context, tenant, scope string, at time.Time) error
}

// NoBudget names the account that made a commit fail, and what it has left. It is
// ErrNoBudget.
type NoBudget struct{ budget.Shortage }

func (n *NoBudget) Error() string { return n.String() }

// Unwrap returns ErrNoBudget.
func (n *NoBudget) Unwrap() error { return ErrNoBudget }

// Fault returns the fault that a client gets: the session takes no more tasks, or the
// budget is exhausted. Trying again helps only if tasks that have not ended hold what is
// missing.
func (n *NoBudget) Fault() *fault.Fault {
	if n.SessionClosed() {
		return fault.Wrap(n, fault.SessionClosed, "%s accepts no more tasks: %s", n.Scope, n.reason())
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

// Moves returns what the writes do to accounts, one move for each.
func Moves(writes []Write) (moves []budget.Move) {
	for _, w := range writes {
		moves = append(moves, w.Ledger.Moves(w.Run.Tenant)...)
	}
	return budget.Merge(moves)
}
