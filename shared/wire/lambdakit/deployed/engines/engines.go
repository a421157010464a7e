// Package engines makes the engines of replicas for bootstraps. It is separate from package
// dispatching because most functions that call a dispatcher send no request to an engine.
package engines

import (
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// mockToken is the interval between two tokens of a mock engine.
const mockToken = 20 * time.Millisecond

// Replicas returns the engines of replicas. A mock engine runs in the process, so each process
// has its own.
func Replicas(p *process.Process) *engine.Replicas {
	services := engine.Services{Secrets: deployed.Secrets(p), Policy: p.Settings().Engines}
	return engine.NewReplicas(p.Clock(), services, func(slots int) port.Engine {
		return mockengine.New(mockengine.Config{Clock: p.Clock(), Slots: slots, TokenEvery: mockToken})
	})
}
