package platform

import (
	"reflect"
	"time"
)

// Reloaded returns the pool with another model after its replicas were reloaded. It admits runs
// again. The pool must have an engine.
func (p Pool) Reloaded(model, by string, now time.Time) Pool {
	e := *p.Engine
	e.Model = model
	e.Loads++
	p.Engine = &e
	p.Draining, p.DrainBy, p.Drained = false, time.Time{}, false
	return p.changed(by, now)
}

// Serving returns the pool with the engine; nil makes it a pool of a runner. A pool that
// already has the engine is unchanged.
func (p Pool) Serving(e *EnginePlace, by string, now time.Time) Pool {
	if e != nil && p.Engine != nil {
		kept := *e
		kept.Loads = p.Engine.Loads
		e = &kept
	}
	if reflect.DeepEqual(p.Engine, e) {
		return p
	}
	p.Engine = e
	return p.changed(by, now)
}
