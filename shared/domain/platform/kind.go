package platform

import (
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// CheckKind returns a fault, with the field pool, if the pool p does not run this kind of work. A
// pool of an engine runs only inference tasks; other pools run none.
func CheckKind(p Pool, kind string) *fault.Fault {
	var f *fault.Fault
	switch {
	case kind == spec.KindInference && p.Engine == nil:
		f = fault.New(fault.Unprocessable, "the pool %s has no engine, want a pool of an engine", p.ID)
	case kind != spec.KindInference && p.Engine != nil:
		f = fault.New(fault.Unprocessable, "the pool %s is of the engine %s and runs inference tasks only, want a pool of a runner", p.ID, p.Engine.Kind)
	default:
		return nil
	}
	f.Field = "pool"
	return f
}
