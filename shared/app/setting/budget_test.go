package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/budget"
)

func TestDefaultBudgetsAreRead(t *testing.T) {
	t.Parallel()
	c, err := service.Read(setting.Map(nil))
	if err != nil || c.Budgets != nil {
		t.Fatalf("got %+v, %v, want the defaults of the package", c.Budgets, err)
	}
	c, err = service.Read(setting.Map(map[string]string{
		"SORTIE_SESSION_BUDGET": "turns=3, cost=0.000002", "SORTIE_PROJECT_BUDGET": "tokens=1000", "SORTIE_TENANT_BUDGET": "time=1h30m,tokens=0",
		"SORTIE_SESSION_TTL": "1h",
	}))
	want := &budget.Defaults{
		Session: budget.Limit{Turns: new(int64(3)), CostNano: new(int64(2000))}, Project: budget.Limit{Tokens: new(int64(1000))},
		Tenant: budget.Limit{TimeMS: new(int64(5_400_000)), Tokens: new(int64(0))}, SessionTTL: time.Hour,
	}
	if diff := cmp.Diff(want, c.Budgets); err != nil || diff != "" {
		t.Errorf("got %v; want -, got +\n%s", err, diff)
	}
}

func TestMalformedBudgetsAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"turns": `turns: "" is not a number`, "tokens=-1": "tokens: ", "time=1": "time: ", "time=-1s": "time: ", "time=1us": "whole number of milliseconds", "cost=x": "cost: ", "cost=-1": "cost: ", "cost=NaN": "cost: ",
		"turns=1,turns=2": "turns occurs twice", "requests=1": "want turns=", "cost=1e9": "cost: ", ",": "empty value",
	} {
		_, err := service.Read(setting.Map(map[string]string{"SORTIE_TENANT_BUDGET": text}))
		if err == nil || !strings.Contains(err.Error(), "SORTIE_TENANT_BUDGET") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want one that names the variable and %q", text, err, want)
		}
	}
}
