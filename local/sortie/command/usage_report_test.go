package command_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestUsageFromTheCommandLine(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route { return inference.BudgetRoutes(s.Budgets, parts.Clock) })
	g := run.Generation{TokensIn: 50, CachedTokens: 40, TokensOut: 3, DecodeMS: 20, Finish: "stop"}
	stage.Charge(t, apitest.Tenant, "m", "alice", "talk", g, apitest.Began)
	stage.Charge(t, apitest.Tenant, "m", "bob", "", g, apitest.Began)
	for _, step := range []struct {
		args string
		code int
		want string // in the output, or in the error message
	}{
		{"usage", 0, "MODEL  TASKS  INPUT  CACHED  OUTPUT  TIME  COST\nm      2      100    80      6       40ms  $0.00000088\ntotal  2      100    80      6       40ms  $0.00000088\n"},
		{"usage --by key,session", 0, "KEY    SESSION  TASKS  INPUT  CACHED  OUTPUT  TIME  COST\nalice  talk     1 "},
		{"usage --by key --csv", 0, "key,tasks,input_tokens,cached_tokens,output_tokens,time_ms,cost_nanodollars\r\nalice,1,50,40,3,20,440\r\n"},
		{"usage --json", 0, `"costNanodollars": 880`},
		{"usage --from 2020-01-01 --to 2020-01-02", 0, "total  0"},
		{"usage --by tenant", 2, "unknown dimension"},
		{"usage --from x", 2, "malformed day"},
		{"usage me", 2, ""},
	} {
		got := sortie(t, map[string]string{"SORTIE_URL": stage.URL}, "", strings.Fields(step.args)...)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.want) {
			t.Errorf("%s: got %d %q %q, want %d %q", step.args, got.code, got.stdout, got.stderr, step.code, step.want)
		}
	}
}
