package inference

import (
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/budgets"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// typeCSV is the content type of usage for spreadsheets.
const typeCSV = "text/csv"

// Page lengths of usage.
const (
	usageLimit   = 1000
	usageDefault = 100
)

// serveUsage returns the usage of the caller's tenant, as a page in JSON or as a whole in CSV.
func serveUsage(svc *budgets.Accounts, w http.ResponseWriter, r *http.Request) error {
	kind, err := httpkit.Accepted(r, httpkit.TypeJSON, typeCSV)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	q := budgets.UsageQuery{From: query.Get("from"), To: query.Get("to"), By: "model", Cursor: query.Get("cursor")}
	if query.Has("by") {
		q.By = query.Get("by")
	}
	for _, name := range []string{"from", "to"} {
		if query.Has(name) && query.Get(name) == "" {
			return fault.Invalid(name, "empty day, want one such as 2026-11-29, or no %s", name)
		}
	}
	if q.Limit, err = httpkit.IntQuery(r, "limit", 1, usageLimit, usageDefault); err != nil {
		return err
	}
	if kind == typeCSV {
		q.Limit, q.Cursor = 0, ""
	}
	report, err := svc.Usage(r.Context(), httpkit.CallerOf(r.Context()), q)
	if err != nil {
		return fmt.Errorf("cannot read the usage: %w", err)
	}
	w.Header().Set("Vary", "Accept")
	if kind != typeCSV {
		return httpkit.WriteJSON(w, http.StatusOK, api.Usage(report))
	}
	text, err := api.UsageCSV(report)
	if err != nil {
		return fmt.Errorf("cannot encode the usage: %w", err)
	}
	return httpkit.WriteBytes(w, http.StatusOK, typeCSV, text)
}
