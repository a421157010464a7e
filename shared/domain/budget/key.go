package budget

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Period is the time for which a key has its budget, in UTC.
type Period string

// The periods. A week begins on Monday. Total is the whole life of the key.
const (
	Day   Period = "day"
	Week  Period = "week"
	Month Period = "month"
	Total Period = "total"
)

// Periods lists the periods.
func Periods() []Period { return []Period{Day, Week, Month, Total} }

// Allowance is the most that the tasks of a key may cost in a period.
type Allowance struct {
	// CostNano is in billionths of a dollar, 1 to MostLimit.
	CostNano int64  `json:"costNanodollars"`
	Period   Period `json:"period"`
}

// Check returns what is wrong with an allowance.
func (a Allowance) Check() error {
	switch {
	case a.CostNano < 1 || a.CostNano > MostLimit:
		return fmt.Errorf("an amount of %d nano-dollars is out of range, want 1 to %d", a.CostNano, int64(MostLimit))
	case !slices.Contains(Periods(), a.Period):
		return fmt.Errorf("unknown period %q, want one of %v", a.Period, Periods())
	}
	return nil
}

// Limit returns the allowance as the limit of an account.
func (a Allowance) Limit() Limit { return Limit{CostNano: &a.CostNano} }

func (a Allowance) String() string {
	return strconv.FormatFloat(Dollars(a.CostNano), 'f', -1, 64) + " USD/" + string(a.Period)
}

// ParseAllowance parses an amount of dollars and a period, such as 20/month, 20USD/month or 0.5/day.
func ParseAllowance(text string) (Allowance, error) {
	amount, period, _ := strings.Cut(text, "/")
	amount = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(amount), "USD"))
	dollars, err := strconv.ParseFloat(amount, 64)
	if err != nil || math.IsNaN(dollars) || dollars > Dollars(MostLimit) {
		return Allowance{}, fmt.Errorf("malformed budget %q, want dollars and a period such as 20USD/month; prices are in USD", text)
	}
	a := Allowance{CostNano: int64(math.Round(dollars * 1e9)), Period: Period(strings.TrimSpace(period))}
	return a, a.Check()
}

// OfferScope returns the scope that counts what a guest's tasks use of a pool of another tenant on the day of
// their admission: offer:OWNER/POOL@2026-11-29. Its account is the guest's.
func OfferScope(owner, pool string, at time.Time) string {
	return offer + owner + "/" + pool + "@" + at.UTC().Format(time.DateOnly)
}

// OfferOf returns the owner and the pool of an OfferScope, as OWNER/POOL; ok is false for other scopes.
func OfferOf(scope string) (pool string, ok bool) { return nameIn(scope, offer) }

// Scopes of accounts of keys. The time is that of the admission, so that a task that ends in the
// next period settles in that of its admission.
const (
	key  = "key:"
	rate = "rate:"
	// offer is that of a guest in a pool of another tenant.
	offer = "offer:"
)

const (
	// keyLife is how long the account of a key is open after its last task. It is longer than any
	// period but Total.
	keyLife = 32 * 24 * time.Hour
	// rateLife does the same for the account of a minute.
	rateLife = time.Hour
)

// KeyScope returns the scope of the budget of a key at a time: key:NAME@PERIOD, for example
// key:alice@2026-11.
func KeyScope(name string, p Period, at time.Time) string {
	at = at.UTC()
	switch p {
	case Day:
		return key + name + "@" + at.Format(time.DateOnly)
	case Week:
		year, week := at.ISOWeek()
		return fmt.Sprintf("%s%s@%d-W%02d", key, name, year, week)
	case Month:
		return key + name + "@" + at.Format("2006-01")
	case Total:
	}
	return key + name + "@" + string(Total)
}

// RateScope returns the scope that counts the requests of a key in a minute.
func RateScope(name string, at time.Time) string {
	return rate + name + "@" + at.UTC().Format("2006-01-02T15:04")
}

// KeyOf returns the name of the key of a KeyScope; ok is false for other scopes.
func KeyOf(scope string) (name string, ok bool) { return nameIn(scope, key) }

// RateOf returns the name of the key of a RateScope; ok is false for other scopes.
func RateOf(scope string) (name string, ok bool) { return nameIn(scope, rate) }

func nameIn(scope, prefix string) (string, bool) {
	name, ok := strings.CutPrefix(scope, prefix)
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		name = name[:at]
	}
	return name, ok
}

// life returns how long the account of a scope is open after its last task; 0 is without an end.
func (d Defaults) life(scope string) time.Duration {
	if _, ok := SessionOf(scope); ok {
		return d.SessionTTL
	}
	if _, ok := RateOf(scope); ok {
		return rateLife
	}
	if _, ok := OfferOf(scope); ok {
		return keyLife
	}
	if _, ok := KeyOf(scope); ok && !strings.HasSuffix(scope, "@"+string(Total)) {
		return keyLife
	}
	return 0
}

// wait returns the time from at until the account of the next minute, for a RateScope.
func wait(scope string, at time.Time) time.Duration {
	if _, ok := RateOf(scope); !ok {
		return 0
	}
	return at.Truncate(time.Minute).Add(time.Minute).Sub(at)
}
