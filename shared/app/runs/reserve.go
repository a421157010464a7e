package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// reserve returns the reservation of a task that is retried, at the current price of its model; nil
// for other work. Fault: ModelUnknown for a model that the caller's token may not use.
func (s *Requests) reserve(ctx context.Context, r run.Run, who port.Identity) (*run.Reservation, error) {
	if r.Work.Inference == nil {
		return nil, nil
	}
	if err := who.NeedModel(r.Work.Inference.Model); err != nil {
		return nil, err
	}
	found, err := s.store.LoadResource(ctx, catalog.Ref(r.Tenant, r.Work.Inference.ServedModel()))
	if errors.Is(err, port.ErrNotFound) {
		return catalog.ForKey(catalog.DefaultPrice().Reserve(r, s.budgets), who, s.now()), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the price of the model: %w", err)
	}
	model, err := catalog.Decode(found)
	if err != nil {
		return nil, err
	}
	return catalog.ForKey(model.Price.Reserve(r, s.budgets), who, s.now()), nil
}
