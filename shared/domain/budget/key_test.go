package budget_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
)

func TestParseAllowance(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"20/month": "20 USD/month", "20USD/month": "20 USD/month", "0.5 USD / day": "0.5 USD/day", "1e2/week": "100 USD/week",
		"0.000000001/total": "0.000000001 USD/total", "1000000/total": "1000000 USD/total",
	} {
		if a, err := budget.ParseAllowance(" " + text); err != nil || a.String() != want {
			t.Errorf("%q: got %v, %v, want %s", text, a, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "malformed budget", "20": "unknown period", "20EUR/month": "prices are in USD", "x/day": "malformed budget", "NaN/day": "malformed budget",
		"1000001/day": "malformed budget", "Inf/day": "malformed budget", "0/day": "out of range", "-1/day": "out of range", "1/year": `unknown period "year"`,
	} {
		if a, err := budget.ParseAllowance(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want the error %q", text, a, err, want)
		}
	}
}

func TestScopesOfKeys(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 12, 31, 23, 59, 59, 0, time.FixedZone("", 3600)) // 22:59:59 UTC
	for p, want := range map[budget.Period]string{
		budget.Day: "key:a.b@2026-12-31", budget.Week: "key:a.b@2026-W53", budget.Month: "key:a.b@2026-12", budget.Total: "key:a.b@total",
	} {
		scope := budget.KeyScope("a.b", p, begin)
		if name, ok := budget.KeyOf(scope); scope != want || name != "a.b" || !ok {
			t.Errorf("%s: got %s of %q, want %s", p, scope, name, want)
		}
	}
	scope := budget.RateScope("a.b", begin)
	if name, ok := budget.RateOf(scope); scope != "rate:a.b@2026-12-31T22:59" || name != "a.b" || !ok {
		t.Errorf("got %s of %q", scope, name)
	}
	for _, other := range []string{budget.ScopeTenant, budget.ProjectScope("key:a@total"), budget.SessionScope("rate:a@x"), "key"} {
		_, key := budget.KeyOf(other)
		if _, rate := budget.RateOf(other); key || rate {
			t.Errorf("got a key for %s", other)
		}
	}
}

// TestAccountsOfKeysAreDeleted checks the end of the accounts of keys, and that tasks of the whole
// period fit into their life.
func TestAccountsOfKeysAreDeleted(t *testing.T) {
	t.Parallel()
	of := budget.Defaults{Key: budget.Limit{CostNano: new(int64(10))}, Rate: budget.Limit{Turns: new(int64(1))}, SessionTTL: time.Minute}
	for scope, life := range map[string]time.Duration{
		budget.KeyScope("a", budget.Total, at): 0, budget.KeyScope("a", budget.Month, at): 32 * 24 * time.Hour, budget.RateScope("a", at): time.Hour,
		budget.ScopeTenant: 0, budget.SessionScope("s"): time.Minute,
	} {
		c := budget.Between([]string{scope}, budget.Amount{}, budget.Amount{}, budget.Amount{Turns: 1, CostNano: 10}, budget.Amount{}, at, of)
		m := c.Moves("acme")[0]
		a, short := m.Apply(m.New())
		if want := (time.Time{}); short != nil || life > 0 && !a.ExpiresAt.Equal(at.Add(life)) || life == 0 && a.ExpiresAt != want {
			t.Errorf("%s: got %+v, %v, want a life of %v", scope, a, short, life)
		}
		short = m.Check(a)
		_, key := budget.KeyOf(scope)
		_, rate := budget.RateOf(scope)
		if limited := key || rate; limited != (short != nil) || rate && short.Wait != 55*time.Second || key && (short.Part != budget.Cost || short.Wait != 0) {
			t.Errorf("%s: got %+v for a second task", scope, short)
		}
	}
}
