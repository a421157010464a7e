package runs_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/token"
	systemclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// system calls the use cases with wire types, as the HTTP handlers do.
type system struct{ *app.System }

// wiring replaces parts of a fixture's system; nil keeps them.
type wiring struct {
	store   port.Store
	runner  port.Runner
	outputs port.Outputs
	clock   systemclock.Clock
	log     *slog.Logger
	config  *runs.Config
}

// system wires the use cases to the parts of the fixture.
func (h *fixture) system(w wiring) system {
	if w.store == nil {
		w.store = h.store
	}
	if w.runner == nil {
		w.runner = h.runner
	}
	if w.outputs == nil {
		w.outputs = h.outputs
	}
	if w.clock == nil {
		w.clock = h.clock
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if w.config == nil {
		w.config = &h.config
	}
	canary := func(ctx context.Context, token string) error {
		if h.probe != nil {
			if err := h.probe(ctx); err != nil {
				return err
			}
		}
		if h.acknowledges {
			return nil
		}
		_, err := h.service.ReceiveCanary(ctx, token)
		return err
	}
	bucket := func(context.Context) (grants.WorkerBucket, error) { return h.bucket, nil }
	environment := func(a runs.Assignment) (map[string]string, error) {
		h.assigned = a
		return api.Environment(a)
	}
	return system{app.NewSystem(
		w.store, h.calls, h.schedules, w.runner, w.outputs, h.signer, w.clock, w.log, &h.random, canary,
		bucket, h.secrets, &h.hooks, environment, api.Documents(), app.NoTasks(), series.Discard, *w.config,
	)}
}

// countingRand counts instead of drawing random values.
type countingRand struct{ ids int }

func (*countingRand) Float64() float64 { return 0 }

func (c *countingRand) Hex(n int) string {
	c.ids++
	return hex.EncodeToString(fmt.Appendf(nil, "%0*d", n, c.ids))
}

// export is a request for an export with its headers.
type export struct {
	Format         string
	Request        contract.ExportRequest
	IdempotencyKey string
}

func exportCall() export {
	return export{Format: "mods", Request: contract.ExportRequest{PI: "01K9XVBAQZF9EHDRXGBEADTZYY"}}
}

func (s system) Export(ctx context.Context, call export) (run.Run, bool, error) {
	submission, err := api.Export(call.Format, call.Request)
	if err != nil {
		return run.Run{}, false, err
	}
	submission.Identity, submission.IdempotencyKey = client, call.IdempotencyKey
	return s.Submit(ctx, submission)
}

func (s system) Started(ctx context.Context, b token.Bearer, body contract.TaskStarted) (time.Time, error) {
	return s.System.Started(ctx, b, runs.Caller{Attempt: body.Attempt, WorkerID: body.WorkerID}, runs.Abilities{HandlesSigterm: body.HandlesSigterm, SendsOutput: body.SendsOutput})
}

func (s system) Heartbeat(ctx context.Context, b token.Bearer, body contract.TaskHeartbeat) (runs.HeartbeatResult, error) {
	by := runs.Caller{Attempt: body.Attempt, WorkerID: body.WorkerID}
	return s.System.Heartbeat(ctx, b, by, body.ProgressPct, body.Message)
}

func (s system) Completed(ctx context.Context, b token.Bearer, body contract.TaskCompleted) (run.Outcome, time.Time, error) {
	by := runs.Caller{Attempt: body.Attempt, WorkerID: body.WorkerID}
	return s.System.Completed(ctx, b, by, func() (run.Report, error) { return api.Completion(b.TaskID, body) })
}

func (s system) Callback(ctx context.Context, b token.Bearer, body contract.Callback) error {
	return s.System.Callback(ctx, b, func(r run.Run) (run.Report, error) { return api.Callback(r, body) })
}
