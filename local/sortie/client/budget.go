package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Session reads a session.
func (c *Client) Session(ctx context.Context, id string) (s contract.Session, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: "v1/sessions/" + url.PathEscape(id), repeat: true}, &s)
	return s, err
}

// DeleteSession closes a session. It is safe to repeat.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	var none []byte
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "v1/sessions/" + url.PathEscape(id), repeat: true}, &none)
	return err
}

// Budget reads the budget of a scope: "tenant", "project:ID" or "session:ID".
func (c *Client) Budget(ctx context.Context, scope string) (b contract.Budget, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: "v1/budgets/" + url.PathEscape(scope), repeat: true}, &b)
	return b, err
}

// PutBudget replaces the limit of a budget.
func (c *Client) PutBudget(ctx context.Context, scope string, limit contract.BudgetLimit) (b contract.Budget, err error) {
	_, err = c.do(ctx, call{method: http.MethodPut, path: "v1/budgets/" + url.PathEscape(scope), body: limit, repeat: true}, &b)
	return b, err
}
