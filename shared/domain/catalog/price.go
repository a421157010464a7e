package catalog

import (
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// DefaultPrice returns the price of a model that the catalog does not have.
func DefaultPrice() Price { return Price{Output: DefaultOutputPrice} }

// Reserve returns the reservation of an inference task: the tokens of its prompt and the most
// tokens that it may generate, at this price. It applies to the accounts of its session, its
// project and its tenant. defaults are the limits of accounts without their own.
func (p Price) Reserve(r run.Run, defaults *budget.Defaults) *run.Reservation {
	work := r.Work.Inference
	of := run.Reservation{Defaults: defaults}
	of.InputPrice, of.OutputPrice = p.Input, p.Output
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
