package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// BenchmarkFirings fires jobs, one run each, 64 at a time: load, then commit.
func BenchmarkFirings(b *testing.B) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "bench.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	store, err := sqlite.NewStore(ctx, db, clock.System{})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	save := func(i int64) error {
		return store.SaveJob(ctx, job.Job{
			Tenant: "default", ID: fmt.Sprintf("job-%d", i), Version: 1, CreatedAt: now, NextAt: now, WakeAt: now,
			Definition: job.Definition{Image: "exec:/bin/true", Schedule: "* * * * *"},
		})
	}
	const callers = 64
	atOnce(b, callers, save)
	before := db.Stats()
	b.StartTimer()
	atOnce(b, callers, func(i int64) error {
		j, err := store.LoadJob(ctx, "default", fmt.Sprintf("job-%d", i))
		if err != nil {
			return err
		}
		d := run.New(run.Run{
			Tenant: "default", ID: run.FiringID(j.ID, j.NextAt), TaskID: "job_" + j.ID, JobID: j.ID, JobVersion: 1, Trigger: run.TriggerSchedule,
			ScheduledAt: j.NextAt, Work: spec.Work{Kind: spec.KindJob, Image: j.Definition.Image, Program: &spec.Program{Completion: spec.CompletionExit}},
		}, now)
		j.NextAt = j.NextAt.Add(time.Minute)
		j.WakeAt = j.NextAt
		return store.FireJob(ctx, j, port.WriteOf(d))
	})
	after := db.Stats()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "firings/s")
	b.ReportMetric(float64(after.Changes-before.Changes)/float64(after.Commits-before.Commits), "firings/fsync")
	b.ReportMetric(float64(after.Rows-before.Rows)/float64(b.N), "rows/firing")
}
