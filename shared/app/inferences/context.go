package inferences

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// contextOf returns the context length of a model in a pool, in tokens; see catalog.Model.ContextIn.
// It does not wait for an engine.
func (s *offers) contextOf(ctx context.Context, pool platform.Pool, model catalog.Model) int {
	return model.ContextIn(s.runs.ContextOf(ctx, pool))
}

// longEnough returns the pools whose context for the model has at least a number of tokens. If
// no pool has, it returns the pool with the largest context.
func (s *offers) longEnough(ctx context.Context, of []platform.Pool, model catalog.Model, tokens int) (fit []platform.Pool) {
	largest := 0
	var best platform.Pool
	for _, p := range of {
		longest := s.contextOf(ctx, p, model)
		if longest >= tokens {
			fit = append(fit, p)
		}
		if longest > largest {
			largest, best = longest, p
		}
	}
	if len(fit) == 0 {
		fit = []platform.Pool{best}
	}
	return fit
}

// ContextOf returns the largest context that the replicas of a pool last reported, in tokens; 0
// if this process knows no report. It asks replicas with an old report again, in the
// background.
func (s *Dispatcher) ContextOf(ctx context.Context, pool platform.Pool) int {
	pool, err := s.capacity.Replicas.Served(ctx, pool)
	if err != nil {
		s.log.WarnContext(ctx, "cannot read the replicas of a pool, so that their context is unknown", "pool", pool.ID, "error", err.Error())
		return 0
	}
	longest := s.replicas.ContextOf(pool)
	s.replicas.DescribeLater(pool, s.start)
	return longest
}

// Describe asks the replicas of a pool for their capabilities, unless their last report is
// recent. It returns when they have answered or ctx has ended.
func (s *engines) Describe(ctx context.Context, pool platform.Pool) {
	pool, err := s.capacity.Replicas.Served(ctx, pool)
	if err != nil {
		return // the context stays unknown; ContextOf reports it
	}
	s.replicas.Describe(ctx, pool)
}
