// Package reception checks whether workers can reach the API. A Prober sends canaries and reads
// the record of those that were received. No worker is declared dead for a silence that an outage
// of Sortie may have caused.
package reception

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Canary sends a heartbeat with the token to token.CanaryTask at the public address, as a
// worker does. It returns nil if the answer acknowledges it.
type Canary func(ctx context.Context, token string) error

// Store is the part of port.Store that a Prober needs.
type Store interface {
	port.ReceptionStore
	// LastHeartbeat is that of port.Store.
	LastHeartbeat(ctx context.Context, ref run.Ref) (run.Heartbeat, error)
}

// Prober sends canaries, and evaluates the silence of workers by those that were received. It is
// safe for concurrent use.
type Prober struct {
	store    Store
	tokens   *grants.Tokens
	clock    clock.Clock
	log      *slog.Logger
	canary   Canary
	interval time.Duration
}

// NewProber returns the prober of a store. interval is the time between calls of Record; 0 is one
// minute.
func NewProber(store Store, tokens *grants.Tokens, c clock.Clock, log *slog.Logger, canary Canary, interval time.Duration) *Prober {
	return &Prober{store, tokens, c, log, canary, cmp.Or(interval, defaultInterval)}
}

// defaultInterval is the time between calls of Record if none is configured.
const defaultInterval = time.Minute

// Gap returns the longest normal time between two received canaries. A longer one means that a
// call of Record was missed, and that there may have been an outage. A schedule may be late by a
// third of its interval. 0 is one minute, as for NewProber.
func Gap(interval time.Duration) time.Duration {
	interval = cmp.Or(interval, defaultInterval)
	return interval + max(interval/3, time.Second)
}

func (s *Prober) now() time.Time { return clock.UTC(s.clock) }

func (s *Prober) warn(ctx context.Context, r run.Run, message string, err error) {
	s.log.LogAttrs(ctx, slog.LevelWarn, message, append(about.Run(&r), slog.String("error", err.Error()))...)
}

// Record sends a canary, unless another process has just done so. An error means that
// workers cannot reach the API.
func (s *Prober) Record(ctx context.Context) error {
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
func (s *Prober) probe(ctx context.Context, before port.Reception) (port.Reception, error) {
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

// Evaluate sends a canary and returns the reception that it proves. A canary that fails proves
// nothing about the worker: the result is zero.
func (s *Prober) Evaluate(ctx context.Context, r run.Run) run.Reception {
	recorded, err := s.store.Reception(ctx)
	if err == nil {
		recorded, err = s.probe(ctx, recorded)
	}
	if err != nil {
		s.warn(ctx, r, "a heartbeat is overdue and the canary failed; the limit restarts", err)
		return run.Reception{}
	}
	return run.Reception{Received: true, Since: recorded.Since, Gap: Gap(s.interval)}
}

// Contact returns the last contact of the run's worker; zero if it cannot be read. If a
// heartbeat is overdue, it calls canary for the reception.
func (s *Prober) Contact(ctx context.Context, r run.Run, canary func() run.Reception) (c run.Contact) {
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
