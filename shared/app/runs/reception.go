package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Canary sends a heartbeat with the token to CanaryTask at the public address, as a
// worker does. It returns nil if the answer acknowledges it.
type Canary func(ctx context.Context, token string) error

// CanaryTask is the task id of canaries. It is never that of a run.
const CanaryTask = token.CanaryTask

// Reception checks whether workers can reach the API. It sends canaries and reads the record of
// those that were received. No worker is declared dead for a silence that an outage of Sortie
// may have caused.
type Reception struct {
	*Records
	tokens   *grants.Tokens
	canary   Canary
	interval time.Duration
}

// NewReception returns the reception of a store.
func NewReception(records *Records, tokens *grants.Tokens, canary Canary, config Config) *Reception {
	return &Reception{records, tokens, canary, sweepInterval(config)}
}

// defaultSweepInterval applies if the configuration has none.
const defaultSweepInterval = time.Minute

// sweepInterval returns the configured interval or its default.
func sweepInterval(config Config) time.Duration {
	return cmp.Or(config.SweepInterval, defaultSweepInterval)
}

// receptionGap returns the longest normal time between two received canaries. A longer one
// means that a sweep was missed, and that there may have been an outage. A schedule may be late
// by a third of its interval.
func receptionGap(interval time.Duration) time.Duration {
	return interval + max(interval/3, time.Second)
}

// Record sends a canary, unless another process has just done so. An error means that
// workers cannot reach the API.
func (s *Reception) Record(ctx context.Context) error {
	recorded, err := s.store.Reception(ctx)
	if err != nil {
		return err
	}
	if age := s.now().Sub(recorded.At); age < 0 || age >= s.interval/2 {
		_, err = s.probe(ctx, recorded)
	}
	return err
}

// probe sends a canary and returns the record after it. It fails if that is still the record
// before: another service may have answered.
func (s *Reception) probe(ctx context.Context, before port.Reception) (port.Reception, error) {
	token, err := s.tokens.Canary(ctx)
	if err != nil {
		return before, err
	}
	sent := s.now()
	if err := s.canary(ctx, token); err != nil {
		return before, fmt.Errorf("workers cannot reach the API: %w", err)
	}
	after, err := s.store.Reception(ctx)
	if err == nil && !after.At.After(before.At) && after.At.Before(sent) {
		err = errors.New("workers cannot reach the API: a canary was acknowledged and not stored")
	}
	return after, err
}

// evaluate sends a canary and returns the reception that it proves. A canary that fails proves
// nothing about the worker: the result is zero.
func (s *Reception) evaluate(ctx context.Context, r run.Run) run.Reception {
	recorded, err := s.store.Reception(ctx)
	if err == nil {
		recorded, err = s.probe(ctx, recorded)
	}
	if err != nil {
		s.warn(ctx, r, "a heartbeat is overdue and the canary failed; the limit restarts", err)
		return run.Reception{}
	}
	return run.Reception{Received: true, Since: recorded.Since, Gap: receptionGap(s.interval)}
}

// contact returns the last contact of the run's worker; zero if it cannot be read. If a
// heartbeat is overdue, it calls canary for the reception.
func (s *Reception) contact(ctx context.Context, r run.Run, canary func() run.Reception) (c run.Contact) {
	if r.State != run.Running || r.Attempt.WorkerID == "" {
		return c
	}
	heartbeat, err := s.store.LastHeartbeat(ctx, r.Ref())
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		s.warn(ctx, r, "cannot read the worker's last contact", err)
		return c
	}
	if c.LastAt = heartbeat.At; r.Overdue(c.LastAt, s.now()) {
		c.Reception = canary()
	}
	return c
}

// receptionTries limits how often a change of the recorded reception is tried again after a
// conflict.
const receptionTries = 10

// ReceiveCanary checks the token of a canary and records its reception, as Authenticate and
// Heartbeat do for a worker. It returns the time of the call. Faults as for token.Verifier. Any
// other error means that the canary was not stored.
func (s *Workers) ReceiveCanary(ctx context.Context, text string) (time.Time, error) {
	at := s.now()
	if err := s.grants.VerifyCanary(ctx, text); err != nil {
		return at, err
	}
	var err error
	for range receptionTries {
		var before port.Reception
		if before, err = s.store.Reception(ctx); err != nil {
			break
		}
		err = s.store.RecordReception(ctx, before, received(before, at, s.gap))
		if !errors.Is(err, port.ErrConflict) {
			break
		}
	}
	if errors.Is(err, port.ErrConflict) {
		return at, fault.New(fault.Unavailable, "too many concurrent canaries; retry")
	}
	if err != nil {
		return at, fmt.Errorf("cannot record the canary: %w", err)
	}
	return at, nil
}

// received returns the record after a canary that was received at a time. It starts a
// new series after a gap, and if a clock was set back.
func received(before port.Reception, at time.Time, gap time.Duration) port.Reception {
	age := at.Sub(before.At)
	if before.Since.IsZero() || age > gap || age < -gap {
		before.Since, before.At = at, at
		return before
	}
	before.At = before.At.Add(max(age, 0))
	return before
}
