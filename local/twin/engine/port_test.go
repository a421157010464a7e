package engine

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestExecutions runs the port's suite on an engine driven by Run.
func TestExecutions(t *testing.T) {
	t.Parallel()
	porttest.Executions(t, func(t *testing.T, ask func(execution, token string)) porttest.ExecutionsHarness {
		t.Helper()
		now, path := clock.NewVirtual(epoch), filepath.Join(t.TempDir(), "sortie.db")
		invoke := func(_ context.Context, _ string, payload json.RawMessage) (json.RawMessage, error) {
			var in struct{ Execution, Token string }
			if err := json.Unmarshal(payload, &in); err != nil {
				return nil, err
			}
			ask(in.Execution, in.Token)
			return json.RawMessage(`{}`), nil
		}
		var running *Engine
		end := func() {}
		begin := func() port.Executions {
			end()
			db, err := sqlite.Open(context.Background(), path)
			if err != nil {
				t.Fatal(err)
			}
			running, err = New(context.Background(), Config{
				DB: db, Clock: now, Name: "suite", Definition: []byte(porttest.ExecutionsMachine), Invoke: invoke,
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			go func() { ended <- running.Run(ctx) }()
			end = func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
			return running
		}
		// The fake must not change the behaviour of the executions that it wraps.
		wrapped := func() port.Executions { return fake.NewExecutions(begin(), nil) }
		h := porttest.ExecutionsHarness{Executions: wrapped(), Reopen: wrapped}
		t.Cleanup(func() { end() })
		h.Pass = func(d time.Duration) {
			now.Advance(d)
			running.nudge() // Run may have set its timer before the clock advanced
		}
		return h
	})
}
