package api

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Session returns the response for the account of a session. warm is the value of Budgets.Warm.
func Session(a budget.Account, defaults budget.Defaults, warm bool, now time.Time) contract.Session {
	id, _ := budget.SessionOf(a.Scope)
	left := a.Left(defaults.Of(a.Scope))
	session := contract.Session{
		SessionID: id, Turns: a.Held.Turns + a.Spent.Turns, TurnsRemaining: left.Turns, KVWarmth: warm,
		TokensRemaining: left.Tokens, TimeRemainingMS: left.TimeMS,
	}
	if left.CostNano != nil {
		session.CostRemaining = new(budget.Dollars(*left.CostNano))
	}
	session.TTLMS = defaults.SessionTTL.Milliseconds() // for an account that no task has used
	if !a.ExpiresAt.IsZero() {
		session.TTLMS = max(a.ExpiresAt.Sub(now).Milliseconds(), 0)
	}
	return session
}

// Budget returns the response for an account.
func Budget(a budget.Account, defaults budget.Defaults) contract.Budget {
	standard := defaults.Of(a.Scope)
	return contract.Budget{
		Scope: a.Scope, Limit: contract.BudgetLimit(a.Limit.Or(standard)), Held: contract.BudgetUse(a.Held), Spent: contract.BudgetUse(a.Spent),
		Remaining: contract.BudgetLimit(a.Left(standard)), Version: a.Version,
	}
}

// BudgetDocument encodes the limit of an account for the digests in its events.
func BudgetDocument(a budget.Account) ([]byte, error) {
	return json.Marshal(struct {
		Scope string               `json:"scope"`
		Limit contract.BudgetLimit `json:"limit"`
	}{a.Scope, contract.BudgetLimit(a.Limit)})
}
