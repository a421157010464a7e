package catalog

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/usage"
	"github.com/sortie-dev/sortie/shared/port"
)

// DefaultPrice returns the price of a model that the catalog does not have.
func DefaultPrice() Price { return Price{Output: DefaultOutputPrice} }

// Reserve returns the reservation of an inference task: the tokens of its prompt and the most
// tokens that it may generate, at this price or at that of its dearest fallback. It applies to the
// accounts of its session, its project and its tenant. defaults are the limits of accounts without
// their own.
func (p Price) Reserve(r run.Run, defaults *budget.Defaults) *run.Reservation {
	work := r.Work.Inference
	of := run.Reservation{Defaults: defaults}
	of.InputPrice, of.CachedPrice, of.OutputPrice = p.Input, p.Cached, p.Output
	if work.SessionID != "" {
		of.Scopes = append(of.Scopes, budget.SessionScope(work.SessionID))
	}
	if r.Workspace != "" {
		of.Scopes = append(of.Scopes, budget.ProjectScope(r.Workspace))
	}
	of.Scopes = append(of.Scopes, budget.ScopeTenant)
	return of.Renewed(Dearest(of.Prices, r))
}

// Dearest returns the most that an inference task may use at the prices of its pool, or at those of
// its dearest fallback.
func Dearest(own usage.Prices, r run.Run) budget.Amount {
	work := r.Work.Inference
	most := func(prices usage.Prices, generated int) budget.Amount {
		if work.Workload != string(port.WorkloadCompletion) {
			generated = 0
		}
		return run.Reservation{Prices: prices}.Most(work.PromptTokens, generated, work.Within)
	}
	held := most(own, work.MaxTokens)
	for _, route := range r.Routes {
		if route.Unfit == "" {
			held = held.AtLeast(most(route.Prices, route.MaxTokens))
		}
	}
	return held
}

// ForKey names the caller's token in a new reservation, and adds the accounts of the token's budget
// and rate, with their limits. at is the time of the admission. It returns of.
func ForKey(of *run.Reservation, who port.Identity, at time.Time) *run.Reservation {
	of.Key = who.Key
	budgets, requests := who.Grant.Budget, who.Grant.RequestsPerMinute
	if who.Key == "" || budgets == nil && requests == 0 {
		return of
	}
	limits := budget.OrStandard(of.Defaults)
	if budgets != nil {
		of.Scopes = append(of.Scopes, budget.KeyScope(who.Key, budgets.Period, at))
		limits.Key = budgets.Limit()
	}
	if requests > 0 {
		of.Scopes = append(of.Scopes, budget.RateScope(who.Key, at))
		limits.Rate = budget.Limit{Turns: &requests}
	}
	of.Defaults = &limits
	return of
}

// ForOffer adds the account of an offer to a new reservation of a task in a guest's pool, with the
// limit of the offer. at is the time of the admission. It returns of.
func ForOffer(of *run.Reservation, pool platform.Pool, at time.Time) *run.Reservation {
	if pool.Origin == nil {
		return of
	}
	of.Scopes = append(of.Scopes, budget.OfferScope(pool.Origin.Tenant, pool.Origin.Pool, at))
	if most := pool.Origin.Offer.TokensPerDay; most > 0 {
		limits := budget.OrStandard(of.Defaults)
		limits.Offer = budget.Limit{Tokens: &most}
		of.Defaults = &limits
	}
	return of
}
