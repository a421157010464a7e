package run

import "github.com/sortie-dev/sortie/shared/domain/spec"

// actOn adds the effects of the actions of an event. attempt is as in spec.EndActionOf.
func (d *draft) actOn(event spec.EndAction, attempt int) {
	for i, action := range d.Actions.On(event) {
		if !action.Type.Follows() {
			continue
		}
		e := Effect{Kind: EffectAct, Action: spec.EndActionOf(event, i, attempt)}
		if !d.State.Terminal() {
			e.At = d.now
		}
		d.effects = append(d.effects, e)
		d.changed = true
	}
}
