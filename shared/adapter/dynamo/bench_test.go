package dynamo_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// calls counts the transactions of a client.
type calls struct {
	dynamo.API
	transactions atomic.Int64
}

func (c *calls) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.transactions.Add(1)
	return c.API.TransactWriteItems(ctx, in, o...)
}

// BenchmarkGrants releases the slots of a full pool concurrently and grants
// each to the next queued run in the same commit. It reports the grants per
// second of one pool, which depend on DynamoDB Local, and the transactions per
// grant including those that conflicted, which do not.
func BenchmarkGrants(b *testing.B) {
	for _, limit := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			cfg := database(b)
			counted := &calls{API: dynamodb.NewFromConfig(cfg)}
			s, err := dynamo.New(counted, dynamo.Config{Table: table(b, cfg), Clock: clock.System{}})
			if err != nil {
				b.Fatal(err)
			}
			decided := func(r run.Run, f run.Fact) port.Write {
				d, err := run.Decide(r, f, time.Now().UTC())
				if err != nil || !d.Changed {
					b.Fatalf("%T in %s: %v", f, r.State, err)
				}
				return port.WriteOf(d)
			}
			commit := func(writes ...port.Write) run.Run {
				if err := s.Commit(b.Context(), writes...); err != nil {
					b.Fatal(err)
				}
				writes[0].Run.Version++
				return writes[0].Run
			}
			created := func(id string) run.Run {
				w := port.WriteOf(run.New(export(id), time.Now().UTC()))
				if _, err := s.Create(b.Context(), w, nil); err != nil {
					b.Fatal(err)
				}
				w.Run.Version = 1
				return w.Run
			}
			holders := []run.Run{}
			for i := range limit {
				holders = append(holders, commit(decided(created(fmt.Sprint("holder-", i)), run.Admitted{Pool: "p", Limit: limit})))
			}
			queue := []run.Run{}
			for i := range b.N {
				queue = append(queue, commit(decided(created(fmt.Sprintf("waiter-%06d", i)), run.Enqueued{Pool: "p", Limit: limit})))
			}
			var mu sync.Mutex
			next := func() (run.Run, bool) {
				mu.Lock()
				defer mu.Unlock()
				if len(queue) == 0 {
					return run.Run{}, false
				}
				first := queue[0]
				queue = queue[1:]
				return first, true
			}
			counted.transactions.Store(0)
			b.ResetTimer()
			var all sync.WaitGroup
			for _, holder := range holders {
				all.Go(func() {
					for {
						waits, ok := next()
						if !ok {
							return
						}
						holder.Slot.State, holder.Slot.Since = "", time.Time{}
						release := port.Write{Run: holder, Lease: run.LeaseRelease}
						grant := decided(waits, run.Granted{Limit: limit})
						if err := s.Commit(b.Context(), release, grant); err != nil {
							b.Error(err)
							return
						}
						holder = grant.Run
						holder.Version++
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "grants/s")
			b.ReportMetric(float64(counted.transactions.Load())/float64(b.N), "transactions/grant")
		})
	}
}
