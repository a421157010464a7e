package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// sevenStates has the size of a run without constraints: four invocations, two tokens, seven
// states entered.
const sevenStates = `{"StartAt":"Pending","States":{
"Pending":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"admit","Payload":{"runId.$":"$.runId","step.$":"$$.State.Name"}},"OutputPath":"$.Payload","Next":"Route"},
"Route":{"Type":"Choice","Choices":[{"Variable":"$.next","StringEquals":"Queued","Next":"Pending"},{"Variable":"$.next","StringEquals":"Creating","Next":"Creating"}],"Default":"Pending"},
"Creating":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken","Parameters":{"FunctionName":"launch","Payload":{"runId.$":"$.runId","token.$":"$$.Task.Token"}},"TimeoutSeconds":600,"Catch":[{"ErrorEquals":["States.ALL"],"ResultPath":"$.error","Next":"Terminating"}],"Next":"Running"},
"Running":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken","Parameters":{"FunctionName":"supervise","Payload":{"runId.$":"$.runId","token.$":"$$.Task.Token"}},"HeartbeatSecondsPath":"$.heartbeatSeconds","TimeoutSecondsPath":"$.timeoutSeconds","Catch":[{"ErrorEquals":["States.ALL"],"ResultPath":"$.error","Next":"Terminating"}],"Next":"Terminating"},
"Terminating":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"terminate","Payload":{"runId.$":"$.runId"}},"OutputPath":"$.Payload","Next":"Done"},
"Done":{"Type":"Choice","Choices":[{"Variable":"$.next","StringEquals":"Completed","Next":"Completed"}],"Default":"Terminating"},
"Completed":{"Type":"Succeed"}}}`

const routing = `{"tenant":"default","runId":"export_mods_1700000000000_0123abcd","next":"Creating","generation":3,"heartbeatSeconds":90,"timeoutSeconds":3600}`

// BenchmarkExecutions measures whole executions, 50 in flight. Handlers
// complete their tokens from their own goroutines.
func BenchmarkExecutions(b *testing.B) {
	for _, persistent := range []bool{false, true} {
		b.Run(fmt.Sprintf("persistent=%v", persistent), func(b *testing.B) {
			config := engine.Config{Clock: clock.System{}, Name: "bench", Definition: []byte(sevenStates)}
			if persistent {
				db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "db"))
				if err != nil {
					b.Fatal(err)
				}
				defer db.Close() //nolint:errcheck // a benchmark
				config.DB = db
			}
			var (
				e      *engine.Engine
				tokens sync.WaitGroup
				slots  = make(chan struct{}, 50)
			)
			config.Invoke = func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
				switch function {
				case "launch", "supervise":
					var in struct{ Token string }
					if err := json.Unmarshal(payload, &in); err != nil {
						return nil, err
					}
					tokens.Go(func() {
						if err := e.Succeed(context.Background(), in.Token, json.RawMessage(routing)); err != nil {
							b.Error(err)
						}
					})
				case "terminate":
					return json.RawMessage(`{"next":"Completed"}`), nil
				}
				return json.RawMessage(routing), nil
			}
			config.Entered = func(_, state string) {
				if state == "Completed" {
					<-slots
				}
			}
			e, err := engine.New(b.Context(), config)
			if err != nil {
				b.Fatal(err)
			}
			ctx, stop := context.WithCancel(b.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = e.Run(ctx) })
			b.ReportAllocs()
			b.ResetTimer()
			var starts sync.WaitGroup
			for i := range b.N {
				slots <- struct{}{}
				starts.Go(func() {
					if err := e.Start(context.Background(), fmt.Sprintf("run-%d", i), json.RawMessage(routing)); err != nil {
						b.Error(err)
					}
				})
			}
			for range cap(slots) {
				slots <- struct{}{}
			}
			b.StopTimer()
			starts.Wait()
			tokens.Wait()
			stop()
			running.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
			if config.DB != nil {
				stats := config.DB.Stats()
				b.ReportMetric(float64(stats.Commits)/float64(b.N), "commits/run")
				b.ReportMetric(float64(stats.Rows)/float64(b.N), "rows/run")
			}
		})
	}
}
