package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestSweepOfASmallIndexScans reads due work from an index with few entries, and from one with
// many, which is not scanned again for ten minutes. Both return the same runs.
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

// TestScanServesEachKindOnce reads one kind of work after the other. A kind that is read
// again, and one that is read ScanAge later, needs another scan, which has the new runs.
func TestScanServesEachKindOnce(t *testing.T) {
	t.Parallel()
	cfg := database(t)
	now, scans, runs := clock.NewVirtual(time.Now().UTC().Truncate(time.Hour)), 0, 0
	s, err := dynamo.New(dynamodb.NewFromConfig(cfg), dynamo.Config{
		Table: table(t, cfg), Clock: now, ScanAge: 10 * time.Second, Consumed: func(operation string, _, _ float64) {
			if operation == "Scan" {
				scans++
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	create := func() {
		runs++
		d := run.New(export(fmt.Sprintf("run-%d", runs)), now.Now())
		if _, err := s.Create(t.Context(), port.WriteOf(d), nil); err != nil {
			t.Fatal(err)
		}
	}
	later := now.Now().Add(24 * time.Hour)
	due := func() {
		t.Helper()
		if found, _, err := s.Due(t.Context(), later, "", 10); err != nil || len(found) != runs {
			t.Errorf("got %v due (%v), want %d runs", found, err, runs)
		}
	}
	jobs := func() {
		t.Helper()
		if found, _, err := s.JobsDue(t.Context(), later, "", 10); err != nil || len(found) > 0 {
			t.Errorf("got jobs %v (%v), want none", found, err)
		}
	}
	for i, step := range []struct {
		do    func()
		scans int
	}{
		{create, 0},
		{jobs, 1},
		{due, 1},
		{create, 1},
		{due, 2},
		{jobs, 2},
		{create, 2},
		{jobs, 3},
		{func() { now.Advance(10 * time.Second) }, 3},
		{due, 4},
	} {
		if step.do(); scans != step.scans {
			t.Errorf("step %d: got %d scans, want %d", i, scans, step.scans)
		}
	}
}

// smallPages is a table whose scans return at most three entries at once.
type smallPages struct{ dynamo.API }

func (a smallPages) Scan(ctx context.Context, in *dynamodb.ScanInput, options ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	in.Limit = aws.Int32(3)
	return a.API.Scan(ctx, in, options...)
}

// TestPagesOfAScannedIndex reads due work in pages that are smaller than the index. The first
// page comes from a scan of several pages, the next ones from queries. No page has a run that
// is no longer due.
func TestPagesOfAScannedIndex(t *testing.T) {
	t.Parallel()
	cfg := database(t)
	now := clock.NewVirtual(time.Now().UTC().Truncate(time.Hour))
	scans := 0
	s, err := dynamo.New(smallPages{dynamodb.NewFromConfig(cfg)}, dynamo.Config{
		Table: table(t, cfg), Clock: now, Concurrency: 1, Consumed: func(operation string, _, _ float64) {
			if operation == "Scan" {
				scans++
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	const runs = 20
	var kept run.Run
	var want []string
	for n := range runs {
		d := run.New(export(fmt.Sprintf("run-%03d", n)), now.Now().Add(time.Duration(n-runs)*time.Hour))
		if _, err := s.Create(t.Context(), port.WriteOf(d), nil); err != nil {
			t.Fatal(err)
		}
		if d.Run.Version++; n == runs/2 {
			kept = d.Run
			continue
		}
		want = append(want, d.Run.ID)
	}
	at := now.Now()
	if due, _, err := s.Due(t.Context(), at, "", runs); err != nil || len(due) != runs {
		t.Fatalf("got %d due (%v), want %d", len(due), err, runs)
	}
	d, err := run.Decide(kept, run.CancelRequested{}, now.Now())
	if err == nil {
		err = s.Commit(t.Context(), port.WriteOf(d))
	}
	if err != nil || !d.Run.State.Terminal() {
		t.Fatalf("got %s (%v), want the run cancelled", d.Run.State, err)
	}
	for _, limit := range []int{1, 2, 7, len(want), len(want) + 1} {
		scans = 0
		var got []string
		for after := ""; ; {
			due, next, err := s.Due(t.Context(), at, after, limit)
			if err != nil || len(due) > limit {
				t.Fatalf("limit %d: got %d due (%v)", limit, len(due), err)
			}
			for _, ref := range due {
				got = append(got, ref.ID)
			}
			if after = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %v, want %v", limit, got, want)
		}
		if scans <= runs/3 {
			t.Errorf("limit %d: got %d scans, want those of several pages", limit, scans)
		}
	}
}
