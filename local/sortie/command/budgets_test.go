package command_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestBudgetsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route { return inference.BudgetRoutes(s.Budgets, parts.Clock) })
	if _, err := stage.Store.PutLimit(t.Context(), apitest.Tenant, budget.SessionScope("talk"), budget.Limit{}, 0, apitest.Began); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args string
		code int
		want string // in the output, or in the error message
	}{
		{"budgets set tenant --tokens 1000 --cost 1.5", 0, "tenant  LIMIT  HELD  SPENT  LEFT\nturns   none   0     0      any\ntokens  1000   0     0      1000\ntime    none   0s    0s     any\ncost    $1.5   $0    $0     $1.5\n"},
		{"budgets set tenant --time 90s", 0, "tokens  1000   0     0      1000\ntime    1m30s  0s    0s     1m30s\n"},
		{"budgets show tenant", 0, "cost    $1.5   $0    $0     $1.5\n"},
		{"budgets show tenant --json", 0, `"cost_nanodollars": 1500000000`},
		{"budgets set tenant", 2, "no limit, want at least one of"},
		{"budgets set tenant --tokens -1", 2, "tokens"},
		{"budgets show other", 2, "scope"},
		{"sessions show talk", 0, "talk: 0 of 8 turns, expires in 10m0s without a further run\nleft: "},
		{"budgets set session:new --turns 2", 0, "session:new  LIMIT  HELD  SPENT  LEFT\nturns        2      0     0      2\n"},
		{"sessions show new", 0, "new: 0 of 2 turns"},
		{"sessions delete talk", 0, "closed talk\n"},
		{"sessions show other", 4, "no such session"},
	} {
		got := sortie(t, map[string]string{"SORTIE_URL": stage.URL}, "", strings.Fields(step.args)...)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.want) {
			t.Errorf("%s: got exit code %d with\n%s%s\nwant %d with\n%s", step.args, got.code, got.stdout, got.stderr, step.code, step.want)
		}
	}
}
