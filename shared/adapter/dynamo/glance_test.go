package dynamo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// TestSweepOfASmallIndexScans looks for work in an index with few entries, and in one
// with many, which is not scanned again for ten minutes. It finds the same runs.
func TestSweepOfASmallIndexScans(t *testing.T) {
	t.Parallel()
	cfg := database(t)
	now := clock.NewVirtual(time.Now().UTC().Truncate(time.Hour))
	counts := map[string]int{}
	s, err := dynamo.New(dynamodb.NewFromConfig(cfg), dynamo.Config{
		Table: table(t, cfg), Clock: now, Concurrency: 1, Consumed: func(operation string, _, _ float64) { counts[operation]++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, row := range []struct {
		runs, scans, queries int
		after                time.Duration
	}{
		{runs: 0, scans: 4},
		{runs: 10, scans: 4},
		{runs: 100, scans: 2, queries: 2*16 + 4 + 4}, // a scan of each index; runs, heartbeats and jobs
		{runs: 100, scans: 1, queries: 2*16 + 4 + 4, after: 9 * time.Minute},
		{runs: 100, scans: 2, queries: 2*16 + 4 + 4, after: time.Minute},
	} {
		now.Advance(row.after)
		for ; made < row.runs; made++ {
			d := run.New(export(fmt.Sprintf("run-%03d", made)), now.Now().Add(-time.Hour-time.Duration(made)*time.Minute))
			if _, err := s.Create(t.Context(), port.WriteOf(d), nil); err != nil {
				t.Fatal(err)
			}
		}
		clear(counts)
		later := now.Now().Add(24 * time.Hour)
		due, _, err := s.Due(t.Context(), later, "", 200)
		if err != nil || len(due) != row.runs {
			t.Errorf("%d runs: got %d due (%v), want all", row.runs, len(due), err)
		}
		for i, ref := range due {
			if want := fmt.Sprintf("run-%03d", row.runs-1-i); ref.ID != want { // the oldest first
				t.Errorf("%d runs: got %s at place %d, want %s", row.runs, ref.ID, i, want)
			}
		}
		if placed, err := s.WithMachine(t.Context(), run.Ref{}, 100); err != nil || len(placed) > 0 {
			t.Errorf("got %v with a machine (%v), want none", placed, err)
		}
		if beats, _, err := s.HeartbeatsDue(t.Context(), later, "", 100); err != nil || len(beats) > 0 {
			t.Errorf("got %v with heartbeats (%v), want none", beats, err)
		}
		if jobs, _, err := s.JobsDue(t.Context(), later, "", 100); err != nil || len(jobs) > 0 {
			t.Errorf("got jobs %v (%v), want none", jobs, err)
		}
		if counts["Scan"] != row.scans || counts["Query"] < row.queries || row.queries == 0 && counts["Query"] > 0 {
			t.Errorf("%d runs after %v: got %d scans and %d queries, want %d and %d", row.runs, row.after, counts["Scan"], counts["Query"], row.scans, row.queries)
		}
	}
}
