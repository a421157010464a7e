package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// reserve returns the reservation of a task that is retried, at the current price of its model.
func (s *Requests) reserve(ctx context.Context, r run.Run) (*run.Reservation, error) {
	found, err := s.store.LoadResource(ctx, catalog.Ref(r.Tenant, r.Work.Inference.Model))
	if errors.Is(err, port.ErrNotFound) {
		return catalog.DefaultPrice().Reserve(r, s.budgets), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the price of the model: %w", err)
	}
	model, err := catalog.Decode(found)
	if err != nil {
		return nil, err
	}
	return model.Price.Reserve(r, s.budgets), nil
}
