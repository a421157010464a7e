package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// BenchmarkHeartbeats stores heartbeats of 10,000 running tasks, 256 at a time.
func BenchmarkHeartbeats(b *testing.B) {
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
	refs := make([]run.Ref, 10_000)
	for i := range refs {
		refs[i] = run.Ref{Tenant: "default", ID: fmt.Sprintf("export_mods_%d", i)}
		w := port.WriteOf(run.New(run.Run{Tenant: "default", ID: refs[i].ID, TaskID: refs[i].ID}, time.Now()))
		w.Heartbeat.Open = &run.Heartbeat{Attempt: 1, WorkerID: "w", At: time.Now(), Token: strings.Repeat("t", 160), Message: strings.Repeat("m", 100)}
		if _, err := store.Create(ctx, w, nil); err != nil {
			b.Fatal(err)
		}
	}
	const callers = 256
	before := db.Stats()
	atOnce(b, callers, func(i int64) error {
		ref := refs[i*7919%int64(len(refs))]
		_, err := store.Heartbeat(ctx, ref, run.Heartbeat{Attempt: 1, WorkerID: "w", At: time.Now(), Message: "reading " + ref.ID})
		return err
	})
	after := db.Stats()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "beats/s")
	b.ReportMetric(float64(after.Changes-before.Changes)/float64(after.Commits-before.Commits), "beats/fsync")
	b.ReportMetric(float64(after.Rows-before.Rows)/float64(b.N), "rows/beat")
}
