package dynamo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// ofJob creates a run of the job that holds its slot.
func (i *interleaved) ofJob(jobID, id string) run.Run {
	i.Helper()
	r := export(id)
	r.JobID = jobID
	w := port.WriteOf(run.New(r, i.clock.Now()))
	w.Run.JobSlot = platform.Slot{Pool: platform.JobPool(jobID), Limit: 1, State: platform.SlotHeld, Since: i.clock.Now()}
	w.JobLease = run.LeaseTake
	_, err := i.Create(i.Context(), w, nil)
	i.ok(err)
	w.Run.Version = 1
	return w.Run
}

// TestSweepOfJobsReadsTheIndexOnce reconciles the pools of many jobs as a sweep does.
func TestSweepOfJobsReadsTheIndexOnce(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	const jobs = 40
	for n := range jobs {
		i.ofJob(fmt.Sprint("job-", n), fmt.Sprint("run-", n))
	}
	queries := 0
	var err error
	i.Store, err = dynamo.Open(i.db.AWS(), dynamo.Config{Table: "sortie", Clock: i.clock, Concurrency: 1, Consumed: func(operation string, _, _ float64) {
		if operation == "Query" {
			queries++
		}
	}})
	i.ok(err)
	for range 3 {
		i.clock.Advance(time.Minute)
		queries = 0
		pools, err := i.Pools(t.Context())
		i.ok(err)
		for _, p := range pools {
			if n, err := i.Reconcile(t.Context(), p.Tenant, p.Pool); err != nil || n != 0 {
				t.Fatalf("pool %s: got %d changed, %v", p.Pool, n, err)
			}
		}
		// One for the register, two for each pool, eight for the shards of the list.
		if len(pools) != jobs || queries > 1+2*jobs+8 {
			t.Errorf("got %d pools with %d queries, want %d with at most %d", len(pools), queries, jobs, 1+2*jobs+8)
		}
	}
}

// TestSurveyMissesLaterCommits passes the slot of a job to another run after the index was read
// for another job.
func TestSurveyMissesLaterCommits(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	i.ofJob("first", "a")
	b := i.ofJob("second", "b")
	unchanged := func(pool string) {
		t.Helper()
		if n, err := i.Reconcile(t.Context(), "default", pool); err != nil || n != 0 {
			t.Errorf("pool %s: got %d changed, %v; want 0", pool, n, err)
		}
	}
	unchanged(platform.JobPool("first"))
	b.JobSlot.State, b.JobSlot.Since = "", time.Time{}
	i.ok(i.Commit(t.Context(), port.Write{Run: b, JobLease: run.LeaseRelease}))
	c := i.ofJob("second", "c")
	unchanged(platform.JobPool("second"))
	holders, err := i.Holders(t.Context(), "default", platform.JobPool("second"), 10)
	if err != nil || len(holders) != 1 || holders[0] != c.Ref() {
		t.Errorf("got holders %v, %v; want c", holders, err)
	}
	// The next call for the same job reads the index again. Only the index has the run whose
	// slot is missing.
	c.JobSlot.State, c.JobSlot.Since = "", time.Time{}
	i.ok(i.Commit(t.Context(), port.Write{Run: c, JobLease: run.LeaseRelease}))
	d := i.created("d")
	d.JobID, d.JobSlot = "second", platform.Slot{Pool: platform.JobPool("second"), Limit: 1, State: platform.SlotHeld, Since: i.clock.Now()}
	i.ok(i.Commit(t.Context(), port.Write{Run: d}))
	if n, err := i.Reconcile(t.Context(), "default", platform.JobPool("second")); err != nil || n != 1 {
		t.Errorf("run without its slot: got %d changed, %v; want 1", n, err)
	}
}
