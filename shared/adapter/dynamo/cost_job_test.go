package dynamo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// bill is a store whose requests are metered, with a row for each of its uses.
type bill struct {
	*testing.T
	*dynamo.Store
	spent      *meter
	clock      *clock.Virtual
	table      strings.Builder
	sumW, sumR float64
}

// openBill returns a bill at the start of an hour, so that no start limit crosses one.
func openBill(t *testing.T) *bill {
	t.Helper()
	cfg := database(t)
	b := &bill{T: t, clock: clock.NewVirtual(time.Now().UTC().Truncate(time.Hour))}
	b.spent = &meter{API: dynamodb.NewFromConfig(cfg), T: t, table: table(t, cfg)}
	var err error
	b.Store, err = dynamo.New(b.spent, dynamo.Config{Table: b.spent.table, Clock: b.clock, Consumed: b.spent.consumed, Concurrency: 1})
	b.ok(err)
	return b
}

func (b *bill) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// row adds the units that were consumed since the last row.
func (b *bill) row(name string) (wru float64) {
	wru, rru := b.spent.take()
	b.sumW, b.sumR = b.sumW+wru, b.sumR+rru
	fmt.Fprintf(&b.table, "%-34s %3.0f WRU %4.1f RRU\n", name, wru, rru)
	return wru
}

// total logs the rows and checks their sum.
func (b *bill) total(of string, most float64) {
	b.Helper()
	b.Logf("what %s costs:\n%s%-34s %3.0f WRU %4.1f RRU", of, b.table.String(), "in total", b.sumW, b.sumR)
	if b.sumW > most {
		b.Errorf("got %.0f write units for %s, want at most %.0f", b.sumW, of, most)
	}
	b.table.Reset()
	b.sumW, b.sumR = 0, 0
}

// nightly is a job with one concurrent run.
func nightly(now time.Time) job.Job {
	next := now.Add(time.Hour)
	return job.Job{
		Tenant: "default", ID: "nightly-report", Version: 1, CreatedAt: now, UpdatedAt: now, UpdatedBy: "token:3f9a1c",
		Since: now, NextAt: next, WakeAt: next,
		Definition: job.Definition{
			ID: "nightly-report", Name: "Nightly report", Image: "registry.fly.io/reports:latest", Command: []string{"report.py", "--all"},
			Schedule: "0 2 * * *", TimeZone: "Europe/Berlin",
		},
	}
}

// firing returns a run of the job for its next time.
func firing(j job.Job) run.Run {
	r := export(run.FiringID(j.ID, j.NextAt))
	r.TaskID = "job_" + j.ID
	r.JobID, r.JobVersion, r.Trigger, r.ScheduledAt = j.ID, j.Version, run.TriggerSchedule, j.NextAt
	r.Work = spec.Work{Kind: spec.KindJob, Image: j.Definition.Image, Program: &spec.Program{Command: j.Definition.Command, Completion: spec.CompletionExit}}
	r.Constraints = &spec.Constraints{MaxConcurrentRuns: 1}
	return r
}

// advance sets the next time of the job, a day later.
func advance(j job.Job) job.Job {
	j.NextAt = j.NextAt.Add(24 * time.Hour)
	j.WakeAt = j.NextAt
	return j
}

// TestScheduledRunCostsAtMostSeventyWriteUnits makes the writes of a firing of a
// job with one concurrent run, in a limited pool, whose program ends by itself.
func TestScheduledRunCostsAtMostSeventyWriteUnits(t *testing.T) {
	t.Parallel()
	b, ctx := openBill(t), t.Context()
	life := func(id string, row func(string) float64) {
		j := nightly(b.clock.Now())
		j.ID = id
		b.ok(b.SaveJob(ctx, j))
		b.spent.take()
		j.Revision++
		b.clock.Advance(j.WakeAt.Sub(b.clock.Now()))
		d := run.New(firing(j), b.clock.Now())
		b.ok(b.FireJob(ctx, advance(j), port.WriteOf(d)))
		row("fired")
		for _, c := range []commit{
			{name: "admitted, takes its slot", fact: run.Admitted{Pool: "default", Limit: 10}},
			{name: "checked, takes its job's slot", fact: run.Checked{Slots: 2}},
			{name: "token of ContainerCreating", fact: run.TokenStored{Step: run.StepContainerCreating, Generation: 1, Token: token()}},
			{name: "machine created", fact: run.MachineCreated{Attempt: 1, Machine: platform.Machine{Runner: "fly", App: "reports", ID: "3d8d9014b32e89"}}},
			{name: "started", fact: run.MachineRunning{Attempt: 1}},
			{name: "token of Running", fact: run.TokenStored{Step: run.StepRunning, Generation: 2, Token: token()}},
			{name: "program has ended", fact: run.MachineGone{Attempt: 1, Exit: &run.Exit{}}},
			{name: "settled, releases its slots", fact: run.Settled{}},
		} {
			b.clock.Advance(8 * time.Second)
			r, err := b.Load(ctx, d.Run.Ref())
			b.ok(err)
			d, err = run.Decide(r, c.fact, b.clock.Now())
			b.ok(err)
			if !d.Changed {
				t.Fatalf("%s in %s: got no change", c.name, r.State)
			}
			b.ok(b.Commit(ctx, port.WriteOf(d)))
			row(c.name)
		}
		if d.Run.State != run.Completed {
			t.Fatalf("got state %s at the end, want Completed", d.Run.State)
		}
		if last, err := b.LastResult(ctx, "default", id); err != nil || !last.Success {
			t.Errorf("got last result %+v, %v", last, err)
		}
		b.spent.take()
	}
	life("first-report", func(string) float64 { w, _ := b.spent.take(); return w }) // registers the pool
	life("nightly-report", b.row)
	b.total("a scheduled run", 70)
}

// TestJobCosts measures the changes of a job without its runs.
func TestJobCosts(t *testing.T) {
	t.Parallel()
	b, ctx := openBill(t), t.Context()
	j := nightly(b.clock.Now())
	b.ok(b.SaveJob(ctx, j))
	b.row("job created")
	j.Revision++
	j.Version++
	j.Definition.Name = "Report of the night"
	b.ok(b.SaveJob(ctx, j))
	b.row("definition changed")
	j.Revision++
	j.Paused, j.PausedAt = true, b.clock.Now()
	b.ok(b.SaveJob(ctx, j))
	b.row("paused or resumed")
	j.Revision++
	missed := firing(j)
	missed.Missed = &run.Missed{Reason: run.SkipMissed, Count: 1, Until: j.NextAt}
	j = advance(j)
	b.ok(b.FireJob(ctx, j, port.WriteOf(run.NewSkipped(missed, b.clock.Now()))))
	if wru := b.row("skipped firing"); wru > 16 {
		t.Errorf("got %.0f write units for a skipped firing, want at most 16", wru)
	}
	j.Revision++
	month := b.clock.Now().Add(30 * 24 * time.Hour)
	j.NextAt, j.WakeAt = month, month
	b.ok(b.SaveJob(ctx, j))
	b.spent.take()
	j.Revision++
	for b.clock.Now().Before(month) { // sweeps, one a day
		due, _, err := b.JobsDue(ctx, b.clock.Now(), "", 100)
		b.ok(err)
		pools, err := b.Pools(ctx)
		b.ok(err)
		if len(due)+len(pools) > 0 {
			t.Fatalf("got due jobs %v, pools %v of an idle job", due, pools)
		}
		b.clock.Advance(24 * time.Hour)
	}
	if wru := b.row("idle month"); wru > 0 {
		t.Errorf("got %.0f write units for a job's idle month, want 0", wru)
	}
	b.ok(b.DeleteJob(ctx, j))
	b.row("job deleted")
	b.total("a job", 42)
}
