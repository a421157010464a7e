package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	// backfillMost is the maximum number of times of a backfill.
	backfillMost = 10_000
	// backfillCalls is the maximum number of concurrent requests of a backfill.
	backfillCalls = 8
)

// backfillPlan is the output of "jobs backfill --json".
type backfillPlan struct {
	Backfill string    `json:"backfill"`
	JobID    string    `json:"jobId"`
	Count    int       `json:"count"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	// New and Existing count the runs that were created and those that existed. They are zero if
	// nothing was changed.
	New      int `json:"new"`
	Existing int `json:"existing"`

	times []time.Time
}

func (a *app) jobsBackfill() *cobra.Command {
	var from, to, name, order string
	var parallel int
	var yes bool
	c := &cobra.Command{
		Use: "backfill JOB", Short: "Run a job for past times of its schedule",
		Long: `Run a job for the times of its schedule from --from, and before --to. Each run is
the firing of its time. A time that has a run already gets no second one, so that
the command can be repeated after an interruption; skipped firings count as runs.

The runs have the priority batch, the trigger backfill and the label
backfill=NAME, by which they can be listed, cancelled and retried together.
Without --yes the command shows what it would start, and changes nothing.`,
		Example: "  sortie jobs backfill nightly-report --from 2027-03-01 --to 2027-03-08\n" +
			"  sortie jobs backfill nightly-report --from 2027-03-01T00:00:00Z --max-parallel 4 --order newest --yes\n" +
			"  sortie runs cancel -l backfill=nightly-report-20270308T101500Z",
	}
	flags := c.Flags()
	flags.StringVar(&from, "from", "", "first time, RFC 3339, or a date in the time zone of the job (required)")
	flags.StringVar(&to, "to", "", "end of the times, as for --from, exclusive; by default now")
	flags.StringVar(&name, "name", "", "name of the backfill; by default the job and the time")
	flags.StringVar(&order, "order", "oldest", "which times start first: oldest or newest")
	flags.IntVar(&parallel, "max-parallel", 1, "how many of the runs run at the same time, 1 to 100")
	flags.BoolVar(&yes, "yes", false, "start the runs")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		if order != "oldest" && order != "newest" {
			return cli.Wrong("--order: %q, want oldest or newest", order)
		}
		if parallel < 1 || parallel > 100 {
			return cli.Wrong("--max-parallel: %d is out of range, want 1 to 100", parallel)
		}
		if !label.ValidValue(name) {
			return cli.Wrong("--name: malformed name %q, want at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit", name)
		}
		if from == "" {
			return cli.Wrong("--from: missing, want the first time, such as 2027-03-01 or 2027-03-01T08:00:00Z")
		}
		now := a.Clock.Now().UTC().Truncate(time.Second)
		c, err := a.Client()
		if err != nil {
			return err
		}
		j, err := c.Job(ctx, args[0])
		if err != nil {
			return err
		}
		if j.ConcurrencyKey != "" && flags.Changed("max-parallel") {
			return cli.Wrong("--max-parallel: the job has the concurrencyKey %q, whose limit applies; leave the flag out", j.ConcurrencyKey)
		}
		begin, end, err := backfillRange(j.TimeZone, from, to, now)
		if err != nil {
			return err
		}
		plan, err := planBackfill(j.Definition, begin, end)
		if err != nil {
			return err
		}
		plan.Backfill = cmp.Or(name, backfillName(j.ID, now))
		if order == "newest" {
			slices.Reverse(plan.times)
		}
		if !yes {
			return errors.Join(a.showBackfill(plan), cli.Wrong("up to %s would be started, and nothing has changed; want --yes too", display.Plural(int64(plan.Count), "run", "runs")))
		}
		if j.ConcurrencyKey != "" {
			parallel = 0
		}
		err = a.startBackfill(ctx, c, &plan, parallel)
		return errors.Join(a.showBackfill(plan), err)
	})
	return c
}

// backfillName returns the default name, at most 63 bytes.
func backfillName(id string, now time.Time) string {
	stamp := now.Format("-20060102T150405Z")
	return id[:min(len(id), 63-len(stamp))] + stamp
}

// backfillRange returns the range of times from --from, and before --to, which have dates in a time
// zone or times. The range ends now at the latest.
func backfillRange(zone, from, to string, now time.Time) (begin, end time.Time, err error) {
	if begin, err = timeOrDate("from", from, zone, now); err != nil {
		return begin, end, err
	}
	if end, err = timeOrDate("to", to, zone, now); err != nil {
		return begin, end, err
	}
	switch {
	case !begin.Before(end):
		return begin, end, cli.Wrong("--to: %s is not after --from, %s", end.Format(time.RFC3339), begin.Format(time.RFC3339))
	case begin.After(now):
		return begin, end, cli.Wrong("--from: %s is in the future, want a past time", begin.Format(time.RFC3339))
	}
	if latest := now.Add(time.Second); end.After(latest) {
		end = latest
	}
	return begin, end, nil
}

// planBackfill finds the times of the schedule from begin to end.
func planBackfill(d job.Definition, begin, end time.Time) (backfillPlan, error) {
	schedule, ok := d.Times()
	if len(d.After) > 0 {
		return backfillPlan{}, cli.Wrong("job %s runs at the times of job %s; backfill that one, with the jobs after it", d.ID, d.After[0].Job)
	}
	if !ok {
		return backfillPlan{}, cli.Wrong("job %s has no schedule, want a job with one", d.ID)
	}
	plan := backfillPlan{JobID: d.ID}
	for at := begin.Add(-1); ; {
		next, ok := schedule.Next(at, begin.Add(-1))
		if !ok || !next.Before(end) {
			break
		}
		if at = next; len(plan.times) == backfillMost {
			return backfillPlan{}, cli.Wrong("--from, --to: more than %d times, want fewer; backfill a part after the other", backfillMost)
		}
		if !schedule.Has(at) {
			return backfillPlan{}, cli.Wrong("job %s fires at an interval, whose past times are unknown; want a job with a cron expression", d.ID)
		}
		plan.times = append(plan.times, at)
	}
	if plan.Count = len(plan.times); plan.Count == 0 {
		return backfillPlan{}, cli.Wrong("--from, --to: the schedule of job %s has no time from %s to %s", d.ID, begin.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	plan.First, plan.Last = plan.times[0], plan.times[plan.Count-1]
	return plan, nil
}

// startBackfill starts a run for each time of the plan, and counts them in the plan. parallel
// concurrency keys, of one run each, limit the runs; 0 leaves the key of the job.
func (a *app) startBackfill(ctx context.Context, c *client.Client, plan *backfillPlan, parallel int) error {
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(plan.JobID+" "+plan.Backfill)))[:16]
	start := func(ctx context.Context, i int) (found bool, err error) {
		request := contract.JobRunRequest{ScheduledAt: plan.times[i], Backfill: plan.Backfill}
		if parallel > 0 {
			request.ConcurrencyKey = fmt.Sprintf("backfill:%s:%d", key, i%parallel)
		}
		return c.BackfillJob(ctx, plan.JobID, request)
	}
	// A key starts its runs by age: each concurrent request has another key.
	width := min(max(parallel, 1), backfillCalls)
	for i := 0; i < len(plan.times); i += width {
		var existing atomic.Int64
		calls, ctx := errgroup.WithContext(ctx)
		n := min(width, len(plan.times)-i)
		for j := range n {
			calls.Go(func() error {
				found, err := start(ctx, i+j)
				if found {
					existing.Add(1)
				}
				return err
			})
		}
		if err := calls.Wait(); err != nil {
			return err
		}
		before := plan.New + plan.Existing
		plan.Existing += int(existing.Load())
		plan.New += n - int(existing.Load())
		if (before+n)/500 > before/500 {
			a.Note("%d of %d times.", before+n, plan.Count)
		}
	}
	return nil
}

func (a *app) showBackfill(plan backfillPlan) error {
	if a.JSON {
		return a.Print(plan)
	}
	err := a.Say("%s: %s of job %s, from %s to %s\n", plan.Backfill, display.Plural(int64(plan.Count), "time", "times"), plan.JobID, plan.First.Format(time.RFC3339), plan.Last.Format(time.RFC3339))
	if plan.New+plan.Existing == 0 || err != nil {
		return err
	}
	return a.Say("%s, %d existing. Next: sortie runs -l backfill=%s\n", display.Plural(int64(plan.New), "new run", "new runs"), plan.Existing, plan.Backfill)
}
