package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/routing"
)

// ShadowEnded: the copy of an inference run for another model has ended. Only the first end counts.
type ShadowEnded struct{ End routing.ShadowEnd }

func (f ShadowEnded) apply(d *draft) error {
	if d.Shadow == nil || d.Shadow.End != nil || d.State != Completed {
		return nil
	}
	ended := *d.Shadow
	f.End.At = d.now
	ended.End, d.Shadow, d.changed = &f.End, &ended, true
	return nil
}

// shadowCharge returns what the end of the run's copy adds to the usage of the tenant. It changes no
// account.
func shadowCharge(before, after Run, now time.Time) *budget.Change {
	if before.Shadow == after.Shadow {
		return nil
	}
	charge := after.Shadow.Charge()
	if charge == nil {
		return nil
	}
	return &budget.Change{At: now, Defaults: budget.OrStandard(nil), Charge: charge}
}
