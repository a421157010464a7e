package display

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Session says what a session has left.
func Session(s contract.Session) string {
	return fmt.Sprintf("%s: %s, expires in %s without a further run\nleft: %s", s.SessionID, turnsOf(s), milliseconds(s.TTLMS), leftOf(s))
}

// turnsOf returns the turns of a session for people.
func turnsOf(s contract.Session) string {
	if s.TurnsRemaining == nil {
		return fmt.Sprintf("%d turns", s.Turns)
	}
	return fmt.Sprintf("%d of %d turns", s.Turns, s.Turns+*s.TurnsRemaining)
}

// leftOf returns what remains of the other limits of a session for people.
func leftOf(s contract.Session) string {
	var left []string
	if s.TokensRemaining != nil {
		left = append(left, fmt.Sprintf("%d tokens", *s.TokensRemaining))
	}
	if s.TimeRemainingMS != nil {
		left = append(left, milliseconds(*s.TimeRemainingMS))
	}
	if s.CostRemaining != nil {
		left = append(left, "$"+strconv.FormatFloat(*s.CostRemaining, 'f', -1, 64))
	}
	if left == nil {
		return "any number of tokens, no limit"
	}
	return strings.Join(left, ", ")
}

// milliseconds returns a duration for people.
func milliseconds(n int64) string {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return (time.Duration(min(n, most)) * time.Millisecond).String()
}

// Budget returns a table of a budget.
func Budget(b contract.Budget) *Table {
	t := NewTable(b.Scope, "LIMIT", "HELD", "SPENT", "LEFT")
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	cost := func(n int64) string { return "$" + strconv.FormatFloat(float64(n)/1e9, 'f', -1, 64) }
	for _, row := range []struct {
		name        string
		limit       *int64
		held, spent int64
		left        *int64
		text        func(int64) string
	}{
		{"turns", b.Limit.Turns, b.Held.Turns, b.Spent.Turns, b.Remaining.Turns, count},
		{"tokens", b.Limit.Tokens, b.Held.Tokens, b.Spent.Tokens, b.Remaining.Tokens, count},
		{"time", b.Limit.TimeMS, b.Held.TimeMS, b.Spent.TimeMS, b.Remaining.TimeMS, milliseconds},
		{"cost", b.Limit.CostNano, b.Held.CostNano, b.Spent.CostNano, b.Remaining.CostNano, cost},
	} {
		limit, left := "none", "any"
		if row.limit != nil {
			limit = row.text(*row.limit)
		}
		if row.left != nil {
			left = row.text(*row.left)
		}
		t.Row(row.name, limit, row.text(row.held), row.text(row.spent), left)
	}
	return t
}
