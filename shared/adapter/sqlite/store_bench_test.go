package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// BenchmarkStoreRuns executes runs by 50 clients, each step as in a handler:
// load, decide, commit.
func BenchmarkStoreRuns(b *testing.B) {
	for _, limit := range []int{0, 40} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			ctx := context.Background()
			path := filepath.Join(b.TempDir(), "bench.db")
			db, err := sqlite.Open(ctx, path)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			store, err := sqlite.NewStore(ctx, db, clock.System{})
			if err != nil {
				b.Fatal(err)
			}
			before := db.Stats()
			const clients = 50
			slots := make(chan struct{}, max(limit, clients))
			if limit > 0 {
				slots = make(chan struct{}, limit)
			}
			atOnce(b, clients, func(i int64) error {
				slots <- struct{}{}
				defer func() { <-slots }()
				return benchRun(ctx, store, i, limit)
			})
			after := db.Stats()
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			runs := float64(b.N)
			b.ReportMetric(runs/b.Elapsed().Seconds(), "runs/s")
			b.ReportMetric(float64(after.Changes-before.Changes)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64(after.Changes-before.Changes)/float64(after.Commits-before.Commits), "commits/fsync")
			b.ReportMetric(float64(after.Rows-before.Rows)/runs, "rows/run")
			b.ReportMetric(float64(info.Size())/runs, "B-kept/run")
		})
	}
}

// atOnce measures b.N calls, numbered from 1, in that many goroutines. Each
// stops at its first error.
func atOnce(b *testing.B, callers int, do func(i int64) error) {
	b.Helper()
	var next atomic.Int64
	done := make(chan error, callers)
	b.ResetTimer()
	for range callers {
		go func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := do(i); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
}

func benchRun(ctx context.Context, store *sqlite.Store, i int64, limit int) error {
	now := time.Now()
	id := fmt.Sprintf("export_mods_%d_%08x", now.UnixMilli(), i)
	d := run.New(run.Run{
		Tenant: "default", ID: id, TaskID: id, CorrelationID: fmt.Sprintf("req-%026d", i),
		Work: spec.Work{
			Kind: "export", Format: "mods", PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Image: "registry.fly.io/exports:latest",
			Options: []byte(`{"recursive":true,"maxDepth":10,"parallelBatchSize":10,"includeOcr":true,"cheimarrosMode":"full"}`),
		},
		Policy: spec.Policy{
			StartTimeout: 10 * time.Minute, TimeLimit: time.Hour, HeartbeatInterval: 30 * time.Second,
			HeartbeatTimeout: 90 * time.Second, CancelGrace: 30 * time.Second, QueueTimeout: time.Hour,
			OutputRetention: 24 * time.Hour, RecordRetention: 7 * 24 * time.Hour,
			Retry: spec.Retry{MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: 2 * time.Second, Multiplier: 2, MaxDelay: time.Minute},
		},
	}, now)
	if _, err := store.Create(ctx, port.WriteOf(d), nil); err != nil {
		return err
	}
	token := fmt.Sprintf("%0160d", i)
	upload := run.Upload{Key: "exports/" + id + "/out.xml", FileName: "out.xml", Size: 1 << 20}
	for _, fact := range []run.Fact{
		run.Admitted{Pool: "default", Limit: limit},
		run.TokenStored{Step: run.StepContainerCreating, Generation: 1, Token: token},
		run.MachineCreated{Attempt: 1, Machine: platform.Machine{ID: "148ed123abcd89"}},
		run.MachineRunning{Attempt: 1},
		run.TokenStored{Step: run.StepRunning, Generation: 2, Token: token},
		run.Reported{Attempt: 1, Report: run.Report{Digest: fmt.Sprintf("%064d", i), Success: true, Upload: &upload}},
		run.Settled{Output: &run.Output{Upload: upload, ETag: "abc"}},
	} {
		r, err := store.Load(ctx, run.Ref{Tenant: "default", ID: id})
		if err != nil {
			return err
		}
		d, err := run.Decide(r, fact, time.Now())
		if err != nil {
			return err
		}
		if !d.Changed {
			return fmt.Errorf("%T changed nothing", fact)
		}
		if err := store.Commit(ctx, port.WriteOf(d)); err != nil {
			return fmt.Errorf("%T: %w", fact, err)
		}
	}
	return nil
}
