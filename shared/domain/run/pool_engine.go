package run

import (
	"reflect"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
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
func (p Pool) Serving(e *platform.EnginePlace, by string, now time.Time) Pool {
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

// CheckKind returns a fault, with the field pool, if the pool does not run this kind of work. A
// pool of an engine runs only inference tasks; other pools run none.
func (p Pool) CheckKind(kind string) *fault.Fault {
	var f *fault.Fault
	switch {
	case kind == KindInference && p.Engine == nil:
		f = fault.New(fault.Unprocessable, "the pool %s has no engine, want a pool of an engine", p.ID)
	case kind != KindInference && p.Engine != nil:
		f = fault.New(fault.Unprocessable, "the pool %s is of the engine %s and runs inference tasks only, want a pool of a runner", p.ID, p.Engine.Kind)
	default:
		return nil
	}
	f.Field = "pool"
	return f
}

// Serves identifies the replica that a run provides.
type Serves struct {
	Pool string `json:"pool"`
	// Replica is the id of the replica. The runs that replace each other share it.
	Replica string `json:"replica"`
}
