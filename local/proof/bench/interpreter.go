package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/statemachines"
)

// measureInterpreter runs the state machine of a run with functions that only
// return the next state.
func measureInterpreter(ctx context.Context, t *table) error {
	if err := playExecutions(ctx, t, "without persistence", nil); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	db, err := sqlite.Open(ctx, filepath.Join(folder, "engine.db"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return playExecutions(ctx, t, "with persistence", db)
}

func playExecutions(ctx context.Context, t *table, how string, db *sqlite.DB) error {
	const executions = 5000
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = name
	}
	definition, err := statemachines.Run(names)
	if err != nil {
		return err
	}
	var e *engine.Engine
	var entered int
	var mu sync.Mutex
	ended := make(chan struct{}, executions)
	e, err = engine.New(ctx, engine.Config{
		DB: db, Clock: clock.System{}, Name: "run", Definition: []byte(definition),
		Invoke: func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
			return plainRun(ctx, e, function, payload)
		},
		Entered: func(_, state string) {
			mu.Lock()
			entered++
			mu.Unlock()
			if state == "Completed" {
				ended <- struct{}{}
			}
		},
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	startedAt := time.Now()
	flying := make(chan struct{}, inFlight)
	running.Go(func() {
		for i := range executions {
			flying <- struct{}{}
			if e.Start(ctx, fmt.Sprintf("run-%d", i), json.RawMessage(`{"tenant":"local","runId":"export_mods_1795251601436_477818f8"}`)) != nil {
				return
			}
		}
	})
	for range executions {
		<-ended
		<-flying
	}
	took := time.Since(startedAt)
	stop()
	running.Wait()
	t.add("interpreter and engine", "states entered per second, "+how, "%.0f", float64(entered)/took.Seconds())
	return nil
}

// plainRun answers like the handlers of a plain run.
func plainRun(ctx context.Context, e *engine.Engine, function string, payload json.RawMessage) (json.RawMessage, error) {
	var in struct{ Token string }
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, err
	}
	route := run.Route{
		Ref: run.Ref{Tenant: "local", ID: "export_mods_1795251601436_477818f8"}, Next: run.StepContainerCreating,
		Generation: 1, HeartbeatSeconds: 90, TimeoutSeconds: 3601, Seconds: 1,
	}
	if function == "Terminate" {
		route.Next = run.StepCompleted
	}
	answer, err := json.Marshal(route)
	if err == nil && in.Token != "" && (function == "Launch" || function == "Supervise") {
		return json.RawMessage("{}"), e.Succeed(ctx, in.Token, answer)
	}
	return answer, err
}
