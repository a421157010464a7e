package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/run"
)

func (a *app) status() *cobra.Command {
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "status TASK",
		Short: "Show how a run stands, or wait for its end",
		Long: `Show how a run stands. Without --wait the exit code says whether the
question was answered; with it, how the run ended.

` + exitHelp,
		Example: `  sortie status export_mods_1704857234567_a3f8c2d1
  sortie status export_mods_1704857234567_a3f8c2d1 --wait --timeout 10m`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait for the end of the run")
	c.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait, such as 90s; 0 is until the end")
	c.RunE = does(func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		if !wait {
			status, err := client.Status(ctx, args[0], 0)
			if err != nil {
				return err
			}
			return a.showStatus(status)
		}
		follow := a.newFollower(client)
		defer follow.close()
		status, err := follow.wait(ctx, args[0], timeout)
		follow.close()
		if status.TaskID != "" && ctx.Err() == nil {
			if shown := a.showStatus(status); shown != nil {
				return shown
			}
		}
		return err
	})
	return c
}

func (a *app) showStatus(s contract.Status) error {
	if a.json {
		return a.print(s)
	}
	t := display.NewTable()
	row := func(name, value string) {
		if value != "" {
			t.Row(name, value)
		}
	}
	row("task", s.TaskID)
	row("status", s.Status)
	row("state", s.State)
	if s.Attempt > 1 {
		row("attempt", fmt.Sprint(s.Attempt))
	}
	if s.QueuePosition != nil {
		row("before it in line", display.Count(int64(*s.QueuePosition)))
	}
	if s.Progress != nil {
		text := s.Progress.Message
		if s.Progress.Percent != nil {
			text = strings.TrimSpace(fmt.Sprintf("%d %% %s", *s.Progress.Percent, text))
		}
		row("progress", text)
	}
	row("export", fmt.Sprintf("%s of %s", s.Format, s.PI))
	row("batch", s.BatchID)
	row("error", s.Error)
	row("error code", s.ErrorCode)
	if s.OutputFileName != "" && s.OutputFileSize != nil {
		row("output", fmt.Sprintf("%s, %s bytes", s.OutputFileName, display.Count(*s.OutputFileSize)))
	}
	row("created", moment(s.CreatedAt))
	row("started", moment(s.StartedAt))
	row("ended", moment(s.CompletedAt))
	row("output until", moment(s.OutputExpiresAt))
	_, err := t.WriteTo(a.Stdout)
	return err
}

// moment writes a time; nothing for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func (a *app) download() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "download TASK",
		Short: "Save the output of a run",
		Long: `Save the output of a run, under the name that the server gives it or the one
that -o names. The file appears whole or not at all, and replaces one that is
there. A connection that breaks is made again. Standard output has the file's
path.

` + exitHelp,
		Example: `  sortie download export_mods_1704857234567_a3f8c2d1
  sortie download export_mods_1704857234567_a3f8c2d1 -o exports/
  sortie download export_mods_1704857234567_a3f8c2d1 -o - | gzip > out.xml.gz`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVarP(&output, "output", "o", "", "file or folder to save to; - is standard output")
	c.RunE = does(func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		status, err := client.Status(ctx, args[0], 0)
		switch {
		case err != nil:
			return err
		case status.Status == contract.StatusProcessing:
			return stillRunning(status.TaskID)
		case status.Status != contract.StatusSuccess:
			return runFailed(status)
		case status.OutputKey == "":
			return advised{error: fmt.Errorf("the run %s left no output", status.TaskID), code: ExitGone, taskID: status.TaskID}
		}
		follow := a.newFollower(client)
		defer follow.close()
		return a.saved(ctx, follow, status, output)
	})
	return c
}

func (a *app) runs() *cobra.Command {
	var page client.Page
	var all bool
	c := &cobra.Command{
		Use:   "runs",
		Short: "List runs, the newest first",
		Long:  "List runs, the newest first.\n\n" + exitHelp,
		Example: `  sortie runs
  sortie runs --state Running
  sortie runs --all --json`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&page.State, "state", "", "only those in this state, such as Running")
	c.Flags().IntVar(&page.Limit, "limit", 20, "how many, 1 to 1000")
	c.Flags().BoolVar(&all, "all", false, "all of them")
	states := make([]cobra.Completion, 0, len(run.States()))
	for _, s := range run.States() {
		states = append(states, string(s))
	}
	if err := c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was defined above
	}
	c.RunE = does(func(ctx context.Context, _ []string) error {
		if page.Limit < 1 || page.Limit > 1000 {
			return wrong("--limit is 1 to 1000")
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		if all {
			page.Limit = 1000
		}
		list, err := c.Tasks(ctx, page)
		for all && err == nil && list.NextCursor != "" {
			page.Cursor = list.NextCursor
			var next contract.TaskList
			next, err = c.Tasks(ctx, page)
			list.Tasks, list.NextCursor = append(list.Tasks, next.Tasks...), next.NextCursor
		}
		if err != nil {
			return err
		}
		return a.showTasks(list)
	})
	return c
}

func (a *app) showTasks(list contract.TaskList) error {
	if a.json {
		return a.print(list)
	}
	t := display.NewTable("TASK", "STATE", "ATTEMPT", "PI", "CREATED", "TOOK", "")
	for _, task := range list.Tasks {
		took, why := "", ""
		if !task.EndedAt.IsZero() {
			took = display.Duration(task.EndedAt.Sub(task.CreatedAt))
		}
		if task.Fault != nil {
			why = task.Fault.Code
		}
		t.Row(task.TaskID, task.State, fmt.Sprint(task.Attempt), task.PI, moment(task.CreatedAt), took, why)
	}
	if _, err := t.WriteTo(a.Stdout); err != nil {
		return err
	}
	switch {
	case len(list.Tasks) == 0:
		a.note("No runs.")
	case list.NextCursor != "":
		a.note("There are more; --all or a higher --limit shows them.")
	}
	return nil
}

func (a *app) events() *cobra.Command {
	return &cobra.Command{
		Use:     "events TASK",
		Short:   "Show what happened to a run",
		Long:    "Show what happened to a run, in order and numbered without gaps.\n\n" + exitHelp,
		Example: `  sortie events export_mods_1704857234567_a3f8c2d1`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: does(func(ctx context.Context, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			events, err := c.Events(ctx, args[0], 0)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(contract.TaskEvents{Events: events})
			}
			t := display.NewTable("SEQ", "TIME", "EVENT", "STATE", "ATTEMPT", "")
			for _, e := range events {
				why := e.Message
				if e.Fault != nil {
					why = fmt.Sprintf("%s: %s", e.Fault.Code, e.Fault.Message)
				}
				t.Row(fmt.Sprint(e.Seq), e.OccurredAt.UTC().Format("2006-01-02 15:04:05.000"), e.Type, e.State, fmt.Sprint(e.Attempt), why)
			}
			_, err = t.WriteTo(a.Stdout)
			return err
		}),
	}
}
