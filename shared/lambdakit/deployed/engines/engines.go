// Package engines makes the engines of replicas for bootstraps. It is separate from package
// dispatching because most functions that call a dispatcher ask no engine.
package engines

import (
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/port"
)

// mockToken is the time that a mock takes for each of its tokens.
const mockToken = 20 * time.Millisecond

// Replicas returns the engines of replicas. A mock is in the process, so that each process
// has its own.
func Replicas(p *process.Process) *engine.Replicas {
	return engine.NewReplicas(p.Clock(), func(slots int) port.Engine {
		return mockengine.New(mockengine.Config{Clock: p.Clock(), Slots: slots, TokenEvery: mockToken})
	})
}
