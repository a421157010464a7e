package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// withItems returns the run of a request with the items of the request, and the list to store
// before the run is created; nil for a request without items.
func (s *Definitions) withItems(ctx context.Context, d job.Definition, r run.Run, in RunRequest) (run.Run, []fan.Item, error) {
	if in.Items == nil && in.ItemsFrom == "" {
		return r, nil, nil
	}
	list, problems := d.ItemsOf(in.Items)
	if len(problems) > 0 {
		return r, nil, job.NewDefinitionProblems(problems)
	}
	spec := *r.Work.Fan
	if in.ItemsFrom == "" {
		spec = spec.Begun(fan.Digest(list))
		r.Work.Fan = &spec
		return r, list, nil
	}
	if in.Items != nil {
		return r, nil, fault.Invalid("itemsFrom", "no meaning with items; leave one out")
	}
	source, err := s.runs.Find(ctx, in.Identity, in.ItemsFrom)
	if fault.Is(err, fault.NotFound) || err == nil && source.Output == nil {
		f := fault.New(fault.Unprocessable, "no run %q with an output, want the id of one", in.ItemsFrom)
		f.Field = "itemsFrom"
		return r, nil, f
	}
	if err != nil {
		return r, nil, fmt.Errorf("cannot read the run with the items: %w", err)
	}
	spec = spec.Begun("")
	spec.From = &fan.Source{RunID: source.ID}
	r.Work.Fan = &spec
	return r, nil, nil
}

// saveItems stores the items of a request.
func (s *Definitions) saveItems(ctx context.Context, tenant string, list []fan.Item) error {
	if list == nil {
		return nil
	}
	if _, err := s.lists.Save(ctx, tenant, list); err != nil {
		return errors.Join(fault.New(fault.Unavailable, "cannot store the items; retry"), err)
	}
	return nil
}
