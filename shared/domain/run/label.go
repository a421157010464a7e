package run

import (
	"maps"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
)

// Relabelled: a client changed the labels of the run. The run can have ended. The fault is
// InvalidRequest if the run would have invalid labels.
type Relabelled struct {
	Change label.Change
	By     Actor
}

func (f Relabelled) actor(Run) Actor { return f.By }

func (f Relabelled) apply(d *draft) error {
	changed := label.Change{}
	for key, value := range f.Change {
		if old, has := d.Labels[key]; has != (value != nil) || has && old != *value {
			changed[key] = value
		}
	}
	labels := changed.Apply(d.Labels)
	if maps.Equal(labels, d.Labels) {
		return nil
	}
	for _, problem := range label.Check(labels) {
		return fault.Invalid(label.Field(problem.Key), "%s", problem.Text)
	}
	d.Labels = labels
	d.emit(Event{Type: EventLabelsChanged, Message: limit.Cut(changed.String(), limit.Message)})
	return nil
}
