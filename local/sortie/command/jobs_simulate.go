package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/local/sortie/schedule"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// simulatedFiring is a line of "jobs simulate --json".
type simulatedFiring struct {
	ScheduledAt string       `json:"scheduledAt"`
	LocalTime   string       `json:"localTime"`
	Decision    job.Decision `json:"decision"`
	Reasons     []string     `json:"reasons"`
	// FiredAt is the time of the firing's commit. Trigger is the trigger of its run.
	FiredAt string      `json:"firedAt"`
	Trigger run.Trigger `json:"trigger"`
	// Count and Until describe firings that are skipped together.
	Count int    `json:"count,omitempty"`
	Until string `json:"until,omitempty"`
	// Graph are the job and those that come after it, with --graph.
	Graph []simulatedJob `json:"graph,omitempty"`
}

func (a *app) jobsSimulate() *cobra.Command {
	var from, until string
	var down []string
	var graph bool
	most := 10
	c := &cobra.Command{
		Use: "simulate FILE", Short: "Show when the job of a file fires",
		Long: `Show the firings of a job file, and what its constraints would do at each. The
command needs no server. The schedule counts from --from, which is exclusive;
--until is inclusive. The decision is "run" if no constraint can prevent the run,
and "depends" if one can: the reasons say which, and what follows then.

--down FROM..TO is an outage: nothing fires from FROM until TO, two times of RFC
3339. What happens to the times in between follows from the fields missed,
startingDeadline and constraints.catchUp of the job. "skip" is a record of firings
that were missed, with their number. The flag can be repeated.

--graph also shows the stored jobs that come after the job, at the times that follow
from the durations of their newest runs, and which of them are critical: a longer
run delays the end of the graph. It asks the server.`,
		Example: "  sortie jobs simulate nightly-report.yaml\n" +
			"  sortie jobs simulate nightly-report.yaml --from 2027-03-27T00:00:00Z --until 2027-03-30T00:00:00Z --json\n" +
			"  sortie jobs simulate nightly-report.yaml --from 2027-03-27T00:00:00Z --down 2027-03-28T01:00:00Z..2027-03-28T09:30:00Z",
	}
	flags := c.Flags()
	flags.StringVar(&from, "from", "", "time after which firings are shown, RFC 3339, or a date in the time zone of the job; by default now")
	flags.StringVar(&until, "until", "", "time until which firings are shown, as for --from; by default 400 years later")
	flags.IntVar(&most, "limit", most, "how many, 1 to 100000")
	flags.BoolVar(&graph, "graph", false, "also show the jobs that come after the job")
	flags.StringArrayVar(&down, "down", nil, "outage FROM..TO, two times of RFC 3339 (repeatable)")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		if most < 1 || most > 100_000 {
			return cli.Wrong("--limit: %d is out of range, want 1 to 100000", most)
		}
		outages, err := outagesOf(down)
		if err != nil {
			return err
		}
		f, err := jobfile.ReadOne(a.ReadUpTo, args[0])
		if err != nil {
			return err
		}
		after, err := timeOrDate("from", from, f.Definition.TimeZone, a.Clock.Now())
		if err != nil {
			return err
		}
		last, err := timeOrDate("until", until, f.Definition.TimeZone, after.AddDate(400, 0, 0))
		if err != nil {
			return err
		}
		if last.Before(after) {
			return cli.Wrong("--until: %s is before --from, %s", until, after.Format(time.RFC3339))
		}
		if after := f.Definition.After; len(after) > 0 {
			return cli.Wrong("%s: the job runs at the times of the jobs that it comes after; simulate the file of job %s with --graph", f.Name, after[0].Job)
		}
		if !f.Definition.Scheduled() {
			return cli.Wrong("%s: the job has no schedule, want one to simulate", f.Name)
		}
		a.warn(f, f.Definition.Warnings())
		var nodes []schedule.Node
		if graph {
			if nodes, err = a.graphOf(ctx, f.Definition.ID); err != nil {
				return err
			}
			nodes = afterFirst(nodes, f.Definition.ID)
			schedule.Graph(nodes)
		}
		return a.showFirings(job.Simulate(f.Definition, after, last, most, outages...), nodes)
	})
	return c
}

// outagesOf parses the values of --down.
func outagesOf(texts []string) (outages []job.Outage, err error) {
	for _, text := range texts {
		first, last, ok := strings.Cut(text, "..")
		from, wrongFrom := time.Parse(time.RFC3339, first)
		to, wrongTo := time.Parse(time.RFC3339, last)
		if !ok || wrongFrom != nil || wrongTo != nil {
			return nil, cli.Wrong("--down: malformed outage %q, want FROM..TO such as 2027-03-28T01:00:00Z..2027-03-28T09:30:00Z", text)
		}
		if !from.Before(to) {
			return nil, cli.Wrong("--down: %s does not end after it begins", text)
		}
		outages = append(outages, job.Outage{From: from, To: to})
	}
	return outages, nil
}

// showFirings prints firings, each with the jobs of its graph.
func (a *app) showFirings(firings []job.SimulatedFiring, graph []schedule.Node) error {
	t := display.NewTable("SCHEDULED", "LOCAL TIME", "DECISION")
	for _, f := range firings {
		line := simulatedFiring{
			ScheduledAt: f.ScheduledAt.UTC().Format(time.RFC3339), LocalTime: f.ScheduledAt.Format(time.RFC3339), Decision: f.Decision,
			Reasons: append([]string{}, f.Reasons...), FiredAt: f.FiredAt.UTC().Format(time.RFC3339), Trigger: f.Trigger,
		}
		if f.Decision == job.DecisionSkip {
			line.Count, line.Until = f.Count, f.Until.UTC().Format(time.RFC3339)
		} else {
			line.Graph = simulatedJobs(graph, f.FiredAt)
		}
		if a.JSON {
			if err := a.PrintLine(line); err != nil {
				return err
			}
			continue
		}
		decision := string(f.Decision)
		if late := f.FiredAt.Sub(f.ScheduledAt); late > 0 && f.Decision != job.DecisionSkip {
			decision += ", " + display.Duration(late) + " late"
		}
		t.Row(line.ScheduledAt, f.ScheduledAt.Format("Mon 2006-01-02 15:04:05 MST"), decision)
		for _, reason := range line.Reasons {
			t.Row("", "", "  "+reason)
		}
		for _, n := range graph[:min(len(graph), len(line.Graph))] {
			t.Row("", "", nodeText(n, f.FiredAt))
		}
	}
	if a.JSON {
		return nil
	}
	if len(firings) == 0 {
		a.Note("No firings.")
	}
	_, err := t.WriteTo(a.Stdout)
	return err
}
