package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Session reads a session.
func (c *Client) Session(ctx context.Context, id string) (contract.Session, error) {
	return ask[contract.Session](ctx, c, call{method: http.MethodGet, path: "v1/sessions/" + url.PathEscape(id), repeat: true})
}

// DeleteSession closes a session. It is safe to repeat.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	_, err := ask[[]byte](ctx, c, call{method: http.MethodDelete, path: "v1/sessions/" + url.PathEscape(id), repeat: true})
	return err
}

// Budget reads the budget of a scope: "tenant", "project:ID" or "session:ID".
func (c *Client) Budget(ctx context.Context, scope string) (contract.Budget, error) {
	return ask[contract.Budget](ctx, c, call{method: http.MethodGet, path: "v1/budgets/" + url.PathEscape(scope), repeat: true})
}

// PutBudget replaces the limit of a budget.
func (c *Client) PutBudget(ctx context.Context, scope string, limit contract.BudgetLimit) (contract.Budget, error) {
	return ask[contract.Budget](ctx, c, call{method: http.MethodPut, path: "v1/budgets/" + url.PathEscape(scope), body: limit, repeat: true})
}
