package balance

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// AskTime is the timeout of a request to an engine about its capabilities, health or load.
const AskTime = 5 * time.Second

// probed limits each request to an engine about itself to AskTime. A server may accept
// connections and never answer; a slot must not wait for it.
type probed struct {
	port.Engine

	clock clock.Clock
}

// Health implements port.Engine.
func (e probed) Health(ctx context.Context) (port.EngineHealth, error) {
	return answered(ctx, e.clock, e.Engine.Health)
}

// Capabilities implements port.Engine.
func (e probed) Capabilities(ctx context.Context) (port.EngineCapabilities, error) {
	return answered(ctx, e.clock, e.Engine.Capabilities)
}

// Load implements port.Engine.
func (e probed) Load(ctx context.Context) (port.EngineLoad, error) {
	return answered(ctx, e.clock, e.Engine.Load)
}

// answered returns the answer of an engine within AskTime. Fault: PoolUnavailable after that.
func answered[T any](ctx context.Context, c clock.Clock, ask func(context.Context) (T, error)) (T, error) {
	within, stop := clock.WithTimeout(ctx, c, AskTime)
	defer stop()
	answer, err := ask(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fault.Wrap(err, fault.PoolUnavailable, "the engine has not answered within %s", AskTime)
	}
	return answer, err
}
