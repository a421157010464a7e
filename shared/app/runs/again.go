package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// onlyFailed returns a retry of old with the items of those children that have not succeeded, and
// stores them. Faults: InvalidRequest for a run without children, Unprocessable if all children
// have succeeded or the items are not stored any more.
func (s *Runs) onlyFailed(ctx context.Context, old, again run.Run) (run.Run, error) {
	const field = "onlyFailed"
	if old.Fan == nil {
		return again, fault.Invalid(field, "only a run with children has failed ones; leave it out")
	}
	refused := fault.New(fault.Unprocessable, "all children have succeeded; leave it out to run all again")
	refused.Field = field
	numbers := old.Fan.Unsuccessful()
	if len(numbers) == 0 {
		return again, refused
	}
	all, err := s.lists.Load(ctx, old.Tenant, old.Work.Fan.List)
	if errors.Is(err, port.ErrNotFound) {
		refused.Message = "the items are not stored any more; run the job"
		return again, refused
	}
	if err != nil {
		return again, err
	}
	list := make([]fan.Item, len(numbers))
	for i, n := range numbers {
		list[i] = all[n]
	}
	digest, err := s.lists.Save(ctx, old.Tenant, list)
	if err != nil {
		return again, fmt.Errorf("cannot store the items of the failed children: %w", err)
	}
	spec := old.Work.Fan.Begun(digest)
	again.Work.Fan = &spec
	return again, nil
}
