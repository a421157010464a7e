package budget_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/budget"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func anyAmount(t *rapid.T, name string) budget.Amount {
	n := func(part string) int64 { return rapid.Int64Range(0, 9).Draw(t, name+" "+part) }
	return budget.Amount{Turns: n("turns"), Tokens: n("tokens"), TimeMS: n("time"), CostNano: n("cost")}
}

// TestHoldsStayWithinLimits applies random holds and settlements to an account. A hold must be
// accepted exactly if every limited part fits; a settlement must always be accepted. If
// settlements use no more than was held, the account must never exceed its limit.
func TestHoldsStayWithinLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := func(part string) *int64 {
			if rapid.Bool().Draw(t, part) {
				return nil
			}
			return new(rapid.Int64Range(0, 40).Draw(t, part+" limit"))
		}
		a := budget.Account{Scope: budget.ScopeTenant, Limit: budget.Limit{Turns: limit("turns"), TimeMS: limit("time")}}
		standard := budget.Limit{Tokens: limit("tokens"), CostNano: limit("cost"), TimeMS: limit("default time")}
		var held []budget.Amount
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			if len(held) > 0 && rapid.Bool().Draw(t, "settle") {
				release := held[0]
				used := anyAmount(t, "used").Within(release)
				used.TimeMS = min(used.TimeMS, release.TimeMS)
				after, short := (budget.Move{Scope: a.Scope, Release: release, Spend: used, At: at, Default: standard}).Apply(a)
				if short != nil {
					t.Fatalf("got %v for a settlement", short)
				}
				a, held = after, held[1:]
			} else if hold := anyAmount(t, "hold"); !hold.Zero() {
				after, short := (budget.Move{Scope: a.Scope, Hold: hold, At: at, Default: standard}).Apply(a)
				fits := true
				sum := a.Held.Plus(a.Spent).Plus(hold).Values()
				for i, most := range a.Limit.Or(standard).Values() {
					fits = fits && (most == nil || sum[i] <= *most)
				}
				if fits != (short == nil) || short != nil && after != a {
					t.Fatalf("got %v and %+v for a hold of %+v on %+v, want fits %t", short, after, hold, a, fits)
				}
				if short == nil {
					held = append(held, hold)
				}
				a = after
			}
			var sum budget.Amount
			for _, h := range held {
				sum = sum.Plus(h)
			}
			if a.Held != sum {
				t.Fatalf("got %+v held, want %+v", a.Held, sum)
			}
			for i, left := range a.Left(standard).Values() {
				most, used := a.Limit.Or(standard).Values()[i], a.Held.Plus(a.Spent).Values()[i]
				if (left == nil) != (most == nil) || left != nil && (*left != *most-used || *left < 0) {
					t.Fatalf("part %d: got %v left of %v with %d used", i, left, most, used)
				}
			}
		}
	})
}

func TestSessionSlidesAndExpires(t *testing.T) {
	t.Parallel()
	move := func(when time.Time) budget.Move {
		c := budget.Between([]string{budget.SessionScope("s")}, budget.Amount{}, budget.Amount{}, budget.Amount{Turns: 1}, budget.Amount{}, when, budget.Standard())
		return c.Moves("acme")[0]
	}
	a, short := move(at).Apply(move(at).New())
	if short != nil || !a.ExpiresAt.Equal(at.Add(10*time.Minute)) {
		t.Fatalf("got %+v, %v, want a session of ten minutes", a, short)
	}
	a, short = move(at.Add(9 * time.Minute)).Apply(a)
	if short != nil || !a.ExpiresAt.Equal(at.Add(19*time.Minute)) {
		t.Fatalf("got %+v, %v, want the session extended", a, short)
	}
	if _, short = move(at.Add(19 * time.Minute)).Apply(a); short == nil || short.Part != budget.Expired || !short.SessionClosed() {
		t.Fatalf("got %v, want an expired session", short)
	}
	if !a.PurgeAt().Equal(a.ExpiresAt.Add(24 * time.Hour)) {
		t.Errorf("got purge at %v", a.PurgeAt())
	}
	a.Spent.Turns = 6
	if _, short = move(at.Add(10 * time.Minute)).Apply(a); short == nil || short.Part != budget.Turns || !short.SessionClosed() || short.Limit != 8 {
		t.Errorf("got %v for a ninth turn, want the session closed", short)
	}
	if (budget.Shortage{Scope: budget.ScopeTenant, Part: budget.Turns}).SessionClosed() {
		t.Error("got a closed session for the turns of a tenant")
	}
}

// TestShortageSaysWhatIsHeld covers amounts that do not fit because of what is spent, of what
// unfinished tasks hold, and of both.
func TestShortageSaysWhatIsHeld(t *testing.T) {
	t.Parallel()
	limit := int64(10)
	for _, row := range []struct{ spent, held, more, want int64 }{
		{8, 0, 3, 0}, {0, 8, 3, 8}, {4, 4, 3, 4}, {8, 1, 3, 0}, {0, 5, 11, 0},
	} {
		m := budget.Move{Tenant: "acme", Scope: budget.ScopeTenant, Hold: budget.Amount{Tokens: row.more}, At: at}
		a := m.New()
		a.Limit.Tokens, a.Spent.Tokens, a.Held.Tokens = &limit, row.spent, row.held
		if row.want > 0 { // together with a part in which no end of a task makes room
			both, cost := a, int64(0)
			both.Limit.CostNano = &cost
			m := m
			m.Hold.CostNano = 1
			if short := m.Check(both); short == nil || short.Held != 0 || short.Part != budget.Cost {
				t.Errorf("%+v: got %+v, want a shortage that stays", row, short)
			}
		}
		if short := m.Check(a); short == nil || short.Held != row.want || strings.Contains(short.String(), "retry") != (row.want > 0) {
			t.Errorf("%+v: got %+v, want %d held", row, short, row.want)
		}
	}
}

func TestShortageNamesItsUnit(t *testing.T) {
	t.Parallel()
	for part, want := range map[budget.Part]string{
		budget.Time: "tenant has 1 left of its limit of 5 milliseconds", budget.Cost: "tenant has 1 left of its limit of 5 nano-dollars",
		budget.Tokens: "tenant has 1 left of its limit of 5 tokens",
	} {
		if got := (budget.Shortage{Scope: budget.ScopeTenant, Part: part, Limit: 5, Left: 1}).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
