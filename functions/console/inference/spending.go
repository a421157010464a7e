package inference

import (
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// spending is what the budget of the tenant spent in the hours of the last day, the oldest first.
// It has only the hours of which the API knows what had been spent.
type spending struct {
	From, Until time.Time
	Hours       []spendingHour
	// Most is the largest cost of an hour. Whole is the limit of the cost, or all that is spent.
	Most, Whole int64
	Limited     bool
}

// spendingHour is what the budget had spent at the end of an hour. Cost is the cost since the
// hour before it, in billionths of a dollar; negative if that is unknown.
type spendingHour struct {
	From  time.Time
	Spent contract.BudgetUse
	Cost  int64
}

// spendingOf returns the use of a budget. It is nil without a known hour.
func spendingOf(a contract.Activity, b contract.Budget) *spending {
	s := &spending{From: a.Since, Until: a.CountedUntil, Whole: max(b.Spent.CostNano, 1)}
	if limit := b.Limit.CostNano; limit != nil && *limit > 0 {
		s.Whole, s.Limited = *limit, true
	}
	for _, slot := range a.Slots {
		if slot.Spent == nil {
			continue
		}
		h := spendingHour{From: slot.From, Spent: *slot.Spent, Cost: -1}
		if n := len(s.Hours); n > 0 {
			h.Cost = max(h.Spent.CostNano-s.Hours[n-1].Spent.CostNano, 0)
		}
		s.Most = max(s.Most, h.Cost)
		s.Hours = append(s.Hours, h)
	}
	if len(s.Hours) == 0 {
		return nil
	}
	return s
}
