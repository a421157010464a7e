package inferences

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// deepestQueue is the number up to which the queue of a pool is counted.
const deepestQueue = 1000

// metricsOf returns the metrics of a task that has generated a number of tokens.
func (s *answering) metricsOf(ctx context.Context, r run.Run, tokens int, now time.Time) inference.Metrics {
	depth, err := s.store.QueueLength(ctx, r.Tenant, r.Slot.Pool, deepestQueue)
	if err != nil && ctx.Err() == nil {
		s.warn(ctx, r, "cannot count the queue of the pool", err)
	}
	left := r.AnswerBy().Sub(now)
	return inference.Metrics{
		QueueDepth: depth, OnTimeProbability: onTime(r, tokens, now), KVWarmth: tokens > 0,
		TokensBudgetRemaining: int64(max(r.Work.Inference.MaxTokens-tokens, 0)), TimeBudgetRemainingMS: max(left.Milliseconds(), 0),
		CostBudgetRemaining: costLeft(r, tokens),
	}
}

// costLeft returns the unused part of the reserved cost of a task, in dollars; 0 without a
// reservation.
func costLeft(r run.Run, tokens int) float64 {
	if r.Reservation == nil {
		return 0
	}
	used := r.Reservation.Use(run.Generation{TokensIn: r.Work.Inference.PromptTokens, TokensOut: tokens})
	return budget.Dollars(max(r.Reservation.Held.CostNano-used.CostNano, 0))
}

// onTime estimates the probability that the longest possible answer is complete before the
// deadline, at the average rate so far.
func onTime(r run.Run, tokens int, now time.Time) float64 {
	took, left := now.Sub(r.Attempt.StartedAt), r.AnswerBy().Sub(now)
	switch {
	case left <= 0:
		return 0
	case tokens == 0 || took <= 0:
		return 1
	}
	needed := time.Duration(float64(took) / float64(tokens) * float64(r.Work.Inference.MaxTokens-tokens))
	if needed <= left {
		return 1
	}
	return float64(left) / float64(needed)
}

// jsonOf encodes texts, which cannot fail.
func jsonOf(texts map[string]string) json.RawMessage {
	data, _ := json.Marshal(texts) //nolint:errchkjson // strings never fail
	return data
}

// Remaining returns what is left in the budgets of a task: the smallest rest of its session,
// its project, its tenant and its key. It is nil for an amount that no budget limits.
func (s *Inference) Remaining(ctx context.Context, r run.Run) (least budget.Limit, err error) {
	if r.Reservation == nil {
		return least, nil
	}
	defaults := budget.OrStandard(s.config.Budgets)
	if of := r.Reservation.Defaults; of != nil {
		defaults.Key = of.Key
	}
	for _, scope := range r.Reservation.Scopes {
		if _, ok := budget.RateOf(scope); ok {
			continue
		}
		account, err := s.store.Account(ctx, r.Tenant, scope)
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return budget.Limit{}, fmt.Errorf("cannot read the budget: %w", err)
		}
		least = least.Least(account.Left(defaults.Of(scope)))
	}
	return least, nil
}
