package inference

import (
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/budgets"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// BudgetRoutes returns the routes of sessions, budgets and usage.
func BudgetRoutes(svc *budgets.Accounts, c clock.Clock) []httpkit.Route {
	return []httpkit.Route{
		httpkit.ForClient(http.MethodGet, "/v1/sessions/{session_id}", access.RunsRead, func(w http.ResponseWriter, r *http.Request) error {
			ctx, who, id := httpkit.Request(r, "session_id")
			a, err := svc.Session(ctx, who, id)
			if err != nil {
				return fmt.Errorf("cannot read the session: %w", err)
			}
			return httpkit.WriteJSON(w, http.StatusOK, api.Session(a, svc.Defaults(), svc.Warm(who, a), c.Now()))
		}),
		httpkit.ForClient(http.MethodDelete, "/v1/sessions/{session_id}", access.RunsWrite, func(w http.ResponseWriter, r *http.Request) error {
			if err := svc.DeleteSession(httpkit.Request(r, "session_id")); err != nil {
				return fmt.Errorf("cannot delete the session: %w", err)
			}
			return httpkit.WriteRemoved(w)
		}),
		httpkit.ForClient(http.MethodGet, "/v1/budgets/{scope}", access.RunsRead, func(w http.ResponseWriter, r *http.Request) error {
			a, err := svc.Budget(httpkit.Request(r, "scope"))
			if err != nil {
				return fmt.Errorf("cannot read the budget: %w", err)
			}
			return httpkit.WriteJSON(w, http.StatusOK, api.Budget(a, svc.Defaults()))
		}),
		httpkit.ForClient(http.MethodPut, "/v1/budgets/{scope}", access.Quota, func(w http.ResponseWriter, r *http.Request) error {
			var body contract.BudgetLimit
			if err := httpkit.DecodeJSON(w, r, &body); err != nil {
				return err
			}
			ctx, who, scope := httpkit.Request(r, "scope")
			a, err := svc.PutBudget(ctx, who, scope, budget.Limit(body))
			if err != nil {
				return fmt.Errorf("cannot store the budget: %w", err)
			}
			return httpkit.WriteJSON(w, http.StatusOK, api.Budget(a, svc.Defaults()))
		}),
		{
			Method: http.MethodGet, Pattern: "/v1/usage", Access: httpkit.ForClients, Scope: access.RunsRead,
			Query:  []string{"from", "to", "by", "cursor", "limit"},
			Handle: func(w http.ResponseWriter, r *http.Request) error { return serveUsage(svc, w, r) },
		},
	}
}
