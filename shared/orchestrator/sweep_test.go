package orchestrator_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	system "github.com/sortie-dev/sortie/shared/adapter/clock"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// watched is a store that tells what a sweep asks of it.
type watched struct {
	orchestrator.Store
	loads int
	due   func(ctx context.Context)
}

// Load is orchestrator.Store.
func (w *watched) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	w.loads++
	return w.Store.Load(ctx, ref)
}

// Due is orchestrator.Store.
func (w *watched) Due(ctx context.Context, now time.Time, limit int) ([]run.Ref, error) {
	if w.due != nil {
		w.due(ctx)
	}
	return w.Store.Due(ctx, now, limit)
}

// TestASweepReadsNoRunByItselfWhoseMachineRuns: ten thousand of them would take
// longer than the minute that a sweep has.
func TestASweepReadsNoRunByItselfWhoseMachineRuns(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.post()
	h.post()
	lost := h.post()
	store := &watched{Store: h.store}
	service := orchestrator.New(orchestrator.Ports{
		Store: store, Executions: h.calls, Runner: h.runner, Outputs: h.outputs, Clock: h.clock, Log: slog.New(slog.DiscardHandler),
	}, h.config)
	h.ok(service.Sweep(t.Context(), 0))
	if store.loads != 0 {
		t.Errorf("%d runs were read one by one, and nothing had happened to any", store.loads)
	}
	h.runner.last().ends(1)
	h.ok(service.Sweep(t.Context(), 0))
	h.stands(lost, run.Terminating)
}

// mute is a platform that does not answer at all.
type mute struct{ orchestrator.Runner }

// List is orchestrator.Runner.
func (mute) List(ctx context.Context) ([]orchestrator.Machine, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAPlatformThatHangsLeavesTheSweepTime: a function has a minute for a sweep,
// and what is due must not wait for the platform's return.
func TestAPlatformThatHangsLeavesTheSweepTime(t *testing.T) {
	t.Parallel()
	h := setup(t)
	asked := false
	store := &watched{Store: h.store, due: func(ctx context.Context) { asked = ctx.Err() == nil }}
	service := orchestrator.New(orchestrator.Ports{
		Store: store, Executions: h.calls, Runner: mute{h.runner}, Outputs: h.outputs, Clock: system.System{}, Log: slog.New(slog.DiscardHandler),
	}, h.config)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := service.Sweep(ctx, 0); !errors.Is(err, context.DeadlineExceeded) || !asked {
		t.Errorf("the sweep tells %v, and what is due was asked for in time: %t", err, asked)
	}
}
