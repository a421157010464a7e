package run

import (
	"slices"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/redelivery"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Redelivered: a client sends failed notifications of the run again: that of an action, or all if
// Action is empty. Those that are being sent are left alone. Faults: NotFound for an expired run, and
// those of redelivery.Choose.
type Redelivered struct{ Action spec.EndAction }

func (f Redelivered) apply(d *draft) error {
	if d.Expired(d.now) {
		return fault.New(fault.NotFound, "no such run, or it has expired")
	}
	again, err := redelivery.Choose(d.FailedActions, d.sending(), f.Action)
	for _, action := range again {
		d.effects, d.changed = append(d.effects, Effect{Kind: EffectAct, Action: action, At: d.now}), true
	}
	return err
}

// sending returns the actions that are to be carried out.
func (r Run) sending() (actions []spec.EndAction) {
	for _, e := range r.Execution.Pending {
		if e.Kind == EffectAct {
			actions = append(actions, e.Action)
		}
	}
	return actions
}

// Sends reports whether an action is to be carried out, for the first time or again.
func (r Run) Sends(action spec.EndAction) bool { return slices.Contains(r.sending(), action) }

// keepFailed records whether an action has failed, if it can be sent again.
func (d *draft) keepFailed(f EndActionDone, of spec.ActionType) {
	switch {
	case f.Failure == "":
		d.FailedActions = redelivery.Remove(d.FailedActions, f.Action)
	case redelivery.Applies(of):
		d.FailedActions = redelivery.Add(d.FailedActions, redelivery.Failed{Action: f.Action, Type: of, Answer: limit.Cut(f.Failure, limit.Message), At: d.now})
	}
}
