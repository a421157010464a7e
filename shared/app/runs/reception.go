package runs

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/reception"
	"github.com/sortie-dev/sortie/shared/app/token"
)

// CanaryTask is the task id of canaries. It is never that of a run.
const CanaryTask = token.CanaryTask

// NewReception returns the prober in the store of the records.
func NewReception(records *Records, tokens *grants.Tokens, canary reception.Canary, config Config) *reception.Prober {
	return reception.NewProber(records.store, tokens, records.clock, records.log, canary, config.SweepInterval)
}

// ReceiveCanary checks the token of a canary and records its reception, as Authenticate and
// Heartbeat do for a worker. It returns the time of the call. Faults as for token.Verifier. Any
// other error means that the canary was not stored.
func (s *Workers) ReceiveCanary(ctx context.Context, text string) (time.Time, error) {
	at := s.now()
	if err := s.grants.VerifyCanary(ctx, text); err != nil {
		return at, err
	}
	return at, reception.Receive(ctx, s.store, at, s.gap)
}
