package simulation

import (
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ harness.Watch = (*world)(nil)

// Started implements harness.Watch.
func (w *world) Started() { w.StartEvents() }

// Written implements harness.Watch.
func (w *world) Written(err error, notes ...port.Note) { w.Events.Written(err, notes...) }

// DuringCall implements harness.Watch.
func (w *world) DuringCall(task string) { w.maybeCancel(task) }

// EngineOutage implements harness.Watch.
func (w *world) EngineOutage() { w.Engine.Die() }
