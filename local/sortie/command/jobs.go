package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) jobs() *cobra.Command {
	switching := func(name, short string, call func(*client.Client, context.Context, string) (client.Job, error)) *cobra.Command {
		return &cobra.Command{
			Use: name + " JOB", Short: short, Long: short + ". The command is idempotent.",
			Example: "  sortie jobs " + name + " nightly-report",
			RunE: cli.Printed(a.App, cli.ByID(call), func(j client.Job) error {
				return a.Result(j, "%s: %s\n", j.ID, a.Schedule(j.JobAnswer))
			}),
		}
	}
	c := a.Resources("jobs", "Store jobs, run them and look at them",
		a.jobsApply(), a.jobsDiff(), a.jobsList(), a.jobsShow(), a.jobsRun(), a.jobsSend(), a.jobsBackfill(), a.jobsHistory(), a.jobsExplain(),
		switching("pause", "Stop the schedule of a job", (*client.Client).PauseJob),
		switching("resume", "Start the schedule of a paused job", (*client.Client).ResumeJob),
		switching("clear", "Forget how the last run of a job ended, for requirePreviousSuccess", (*client.Client).ClearJob),
		a.Removal(&cobra.Command{
			Use: "delete JOB", Short: "Delete a job with its versions", Long: "Delete a job with its versions. Its runs stay.",
			Example: "  sortie jobs delete nightly-report",
		}, "deleted", (*client.Client).DeleteJob))
	for _, of := range c.Commands() {
		if strings.HasSuffix(of.Use, " JOB") {
			of.ValidArgsFunction = a.jobIDs()
		}
	}
	c.AddCommand(a.jobsInit(), a.jobsExport(), a.jobsValidate(), a.jobsSimulate())
	return c
}

func (a *app) jobsList() *cobra.Command {
	page := client.Page{Limit: 1000}
	list := &cobra.Command{
		Use: "list", Short: "List the jobs, by id",
		Long: `List the stored jobs, by id. Exports by a schedule are jobs with the field export.
An export by "sortie export", or a program by "sortie run", is a run of no stored
job: "sortie runs" lists it.`,
		Example: "  sortie jobs list\n  sortie jobs list -l team=data,env!=dev --json",
		RunE: cli.Printed(a.App, func(ctx context.Context, c *client.Client, _ []string) (contract.JobList, error) {
			return allJobs(ctx, c, page)
		}, a.showJobs),
	}
	list.Flags().StringVar(&page.Text, "text", "", "only jobs whose id or name contains the text, in any case")
	list.Flags().StringVar(&page.Schedule, "schedule", "", "only jobs that fire (active), paused jobs, or jobs without a schedule (none)")
	selectorFlag(list.Flags(), &page.Filter.Label)
	return list
}

// allJobs reads all pages of the list of the jobs that a page selects.
func allJobs(ctx context.Context, c *client.Client, page client.Page) (contract.JobList, error) {
	list := contract.JobList{Jobs: []contract.JobSummary{}}
	err := cli.Pages(0, func(cursor string) (int, string, error) {
		page.Cursor = cursor
		next, err := c.Jobs(ctx, page)
		list.Jobs = append(list.Jobs, next.Jobs...)
		return len(list.Jobs), next.NextCursor, err
	})
	return list, err
}

func (a *app) showJobs(list contract.JobList) error {
	heads := []string{"JOB", "SCHEDULE", "NEXT", "VERSION"}
	labelled := slices.ContainsFunc(list.Jobs, func(j contract.JobSummary) bool { return len(j.Labels) > 0 })
	if labelled {
		heads = append(heads, "LABELS")
	}
	t := display.NewTable(heads...)
	for _, j := range list.Jobs {
		next := a.Moment(j.NextAt)
		if j.Paused {
			next = "paused"
		}
		cells := []string{j.ID, j.Starts(), next, fmt.Sprint(j.Version)}
		if labelled {
			cells = append(cells, label.Text(j.Labels))
		}
		t.Row(cells...)
	}
	if len(list.Jobs) == 0 {
		a.Note("No jobs.")
	}
	return a.Table(list, t)
}

func (a *app) jobsShow() *cobra.Command {
	var version int64
	c := &cobra.Command{
		Use: "show JOB", Short: "Show a job, or an earlier version of it",
		Long: `Show the definition of a job as a job file, with the state of its schedule in
comments.`,
		Example: "  sortie jobs show nightly-report\n  sortie jobs show nightly-report --version 2 > old.yaml",
	}
	c.Flags().Int64Var(&version, "version", 0, "number of a version; by default the current one")
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		if version != 0 {
			old, err := c.JobVersion(ctx, args[0], version)
			if err != nil {
				return err
			}
			return a.showDefinition(old, old.Definition, a.Times.Version(old.JobVersion))
		}
		j, err := c.Job(ctx, args[0])
		if err != nil {
			return err
		}
		return a.showDefinition(j, j.Definition, a.Times.Version(j.JobVersion), a.Schedule(j.JobAnswer))
	})
	return c
}

func (a *app) showDefinition(answer any, d job.Definition, comments ...string) error {
	if a.JSON {
		return a.Print(answer)
	}
	text, err := d.Canonical()
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("cannot write the definition: %w", err)
	}
	for _, line := range comments {
		if err := a.Say("# %s\n", display.Clean(line)); err != nil {
			return err
		}
	}
	return a.Say("%s", text)
}

func (a *app) jobsRun() *cobra.Command {
	var given, labels, inputs []string
	var at, key, priority, concurrencyKey, items, itemsFrom string
	var plan, wait bool
	c := &cobra.Command{
		Use: "run JOB", Short: "Run a job, now or at a time",
		Long: `Create a run of a job. Standard output has the id of the run. A run at a time is
the firing of the job at that time, of which there is one. With --wait the exit code
is the outcome of the run; Ctrl-C leaves it alone.`,
		Example: "  sortie jobs run nightly-report --wait\n" +
			"  sortie jobs run nightly-report --param LEVEL=debug --at 2027-03-01T08:00:00Z\n" +
			"  sortie jobs run day-report --input day=2027-03-01 --input format=json\n" +
			"  sortie jobs run fetch-pages --items pages.txt",
	}
	flags := c.Flags()
	flags.StringArrayVar(&given, "param", nil, "environment variable of this run, NAME=VALUE (repeatable)")
	labelFlag(flags, &labels, "label of this run, beside those of the job")
	flags.StringArrayVar(&inputs, "input", nil, "value of an input that the job declares, NAME=VALUE (repeatable)")
	flags.StringVar(&items, "items", "", "file with an item of a child on each line, - for standard input; by default those of the job")
	flags.StringVar(&itemsFrom, "items-from", "", "run whose output has the items")
	flags.StringVar(&priority, "priority", "", "priority of this run: interactive, normal or batch; by default that of the job")
	flags.StringVar(&concurrencyKey, "concurrency-key", "", "concurrency key of this run; by default that of the job")
	flags.StringVar(&at, "at", "", "time of the run, RFC 3339, at most 30 days ahead; by default now")
	flags.StringVar(&key, "idempotency-key", "", "the same key returns the same run; by default a new key")
	flags.BoolVar(&plan, "plan", false, planHelp)
	flags.BoolVar(&wait, "wait", false, "wait for the end of the run, and show its states")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		parameters, err := argument.Assignments("param", given)
		if err != nil {
			return err
		}
		request := contract.JobRunRequest{Parameters: parameters, Priority: priority, ConcurrencyKey: concurrencyKey, ItemsFrom: itemsFrom}
		if items != "" {
			if request.Items, err = a.readItems(items); err != nil {
				return err
			}
		}
		if request.Labels, err = argument.Assignments("label", labels); err != nil {
			return err
		}
		if request.Inputs, err = argument.Inputs(inputs); err != nil {
			return err
		}
		if request.ScheduledAt, err = timeFlag("at", at, time.Time{}); err != nil {
			return err
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		if plan {
			p, err := c.Plan(ctx, contract.PlanJobRequest{
				JobID: args[0], Parameters: parameters, Inputs: request.Inputs, ScheduledAt: request.ScheduledAt, Priority: priority, ConcurrencyKey: concurrencyKey,
			})
			if err != nil {
				return err
			}
			return a.Table(p, a.Plan(p))
		}
		key = cmp.Or(key, uuid.NewString())
		accepted, err := c.RunJob(ctx, args[0], request, key)
		if err != nil {
			return err
		}
		if a.JSON && !wait {
			return a.Print(accepted)
		}
		if !a.JSON {
			err = a.Say("%s\n", accepted.RunID)
		}
		if err != nil || !wait {
			return err
		}
		return a.waitFor(ctx, c, accepted.TaskID)
	})
	return c
}

// waitFor shows the states of a run until its end. Its error is the outcome of the run.
func (a *app) waitFor(ctx context.Context, c *client.Client, id string) error {
	follow := a.newFollower(c)
	status, err := follow.wait(ctx, id, 0)
	follow.close()
	if a.JSON && status.TaskID != "" {
		return errors.Join(a.Print(status), err)
	}
	return err
}

// timeFlag parses the time of a flag. It returns the fallback for an empty text.
func timeFlag(name, text string, fallback time.Time) (time.Time, error) {
	if text == "" {
		return fallback, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, cli.Wrong("--%s: malformed time %q, want RFC 3339, such as 2027-03-01T08:00:00Z", name, text)
	}
	return at, nil
}

// timeOrDate parses the time of a flag as timeFlag does, or a date, whose midnight in the zone of a
// job is the time.
func timeOrDate(name, text, zone string, fallback time.Time) (time.Time, error) {
	if in, err := time.LoadLocation(zone); err == nil {
		if day, err := time.ParseInLocation(time.DateOnly, text, in); err == nil {
			return day, nil
		}
	}
	return timeFlag(name, text, fallback)
}
