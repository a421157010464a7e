package simulation

import (
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ harness.Watch = (*world)(nil)

// Started implements watch.
func (w *world) Started() { w.startEvents() }

// Written implements watch.
func (w *world) Written(err error, notes ...port.Note) { w.events.written(err, notes...) }

// DuringCall implements watch.
func (w *world) DuringCall(task string) { w.maybeCancel(task) }

// EngineOutage implements watch.
func (w *world) EngineOutage() { w.engine.die() }
