package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/budget"
	"github.com/sortie-dev/sortie/shared/catalog"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// reserved returns the reservation of an inference task: the tokens of its prompt and the most
// tokens that it may generate, at a price. It applies to the accounts of its session, its
// project and its tenant.
func (s *Requests) reserved(r run.Run, price catalog.Price) *run.Reservation {
	work := r.Work.Inference
	of := run.Reservation{InputPrice: price.Input, OutputPrice: price.Output, Defaults: s.budgets}
	if work.SessionID != "" {
		of.Scopes = append(of.Scopes, budget.SessionScope(work.SessionID))
	}
	if r.Workspace != "" {
		of.Scopes = append(of.Scopes, budget.ProjectScope(r.Workspace))
	}
	of.Scopes = append(of.Scopes, budget.ScopeTenant)
	generated := work.MaxTokens
	if work.Workload != string(port.WorkloadCompletion) {
		generated = 0
	}
	return of.Renewed(of.Most(work.PromptTokens, generated, work.Within))
}

// defaultPrice is the price of a model that the catalog does not have.
var defaultPrice = catalog.Price{Output: catalog.DefaultOutputPrice}

// reserve returns the reservation of a task that is retried, at the current price of its model.
func (s *Requests) reserve(ctx context.Context, r run.Run) (*run.Reservation, error) {
	found, err := s.store.LoadResource(ctx, catalog.Ref(r.Tenant, r.Work.Inference.Model))
	if errors.Is(err, port.ErrNotFound) {
		return s.reserved(r, defaultPrice), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the price of the model: %w", err)
	}
	model, err := catalog.Decode(found)
	if err != nil {
		return nil, err
	}
	return s.reserved(r, model.Price), nil
}

// Remaining returns what is left in the budgets of a task: the smallest rest of its session,
// its project and its tenant. It is nil for an amount that no budget limits.
func (s *Inference) Remaining(ctx context.Context, r run.Run) (least budget.Limit, err error) {
	if r.Reservation == nil {
		return least, nil
	}
	defaults := budget.OrStandard(s.budgets)
	for _, scope := range r.Reservation.Scopes {
		account, err := s.store.Account(ctx, r.Tenant, scope)
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return budget.Limit{}, fmt.Errorf("cannot read the budget: %w", err)
		}
		least = least.Least(account.Left(defaults.Of(scope)))
	}
	return least, nil
}
