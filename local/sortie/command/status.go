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
)

func (a *app) status() *cobra.Command {
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "status RUN",
		Short: "Show a run's status, or wait for its end",
		Long: `Show a run's status. Without --wait the exit code is 0 if the run is known;
with --wait it is the outcome of the run.`,
		Example: `  sortie status export_mods_1704857234567_a3f8c2d1
  sortie status export_mods_1704857234567_a3f8c2d1 --wait --timeout 10m`,
		ValidArgsFunction: a.runIDs(),
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait for the end of the run")
	c.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait, such as 90s; 0 is until the end")
	c.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		if !wait {
			status, err := c.Status(ctx, args[0], 0)
			if err != nil {
				return err
			}
			return a.showStatus(ctx, c, status)
		}
		follow := a.newFollower(c)
		defer follow.close()
		status, err := follow.wait(ctx, args[0], timeout)
		follow.close()
		if status.TaskID != "" && ctx.Err() == nil {
			if shown := a.showStatus(ctx, c, status); shown != nil {
				return shown
			}
		}
		return err
	})
	return c
}

func (a *app) showStatus(ctx context.Context, c *client.Client, s contract.Status) error {
	if a.json {
		return a.print(s)
	}
	t := display.NewTable()
	row := func(name, value string) {
		if value != "" {
			t.Row(name, value)
		}
	}
	row("run", s.TaskID)
	if s.Format == "" {
		if task, err := c.Task(ctx, s.TaskID); err == nil { // the status is complete without it
			row("of", subject(task))
		}
	}
	row("status", s.Status)
	row("state", s.State)
	if s.Attempt > 1 {
		row("attempt", fmt.Sprint(s.Attempt))
	}
	if len(s.FellBack) > 0 {
		row("pool", s.Pool)
	}
	for _, f := range s.FellBack {
		row("fallback", a.fellBack(f))
	}
	if s.QueuePosition != nil {
		row("queued before it", display.Count(int64(*s.QueuePosition)))
	}
	if s.Progress != nil && !s.Skipped { // progress has the same text as the error
		name := "progress"
		if !s.CompletedAt.IsZero() {
			name = "result"
		}
		text := s.Progress.Message
		if s.Progress.Percent != nil {
			text = strings.TrimSpace(fmt.Sprintf("%d %% %s", *s.Progress.Percent, text))
		}
		row(name, text)
	}
	if s.Format != "" {
		row("export", fmt.Sprintf("%s of %s", s.Format, s.PI))
	}
	if by := s.TriggeredBy; by != nil {
		row("triggered by", relative(*by))
	}
	for _, child := range s.Triggered {
		row("triggered", relative(child))
	}
	if s.BatchID != contract.BatchSingle {
		row("batch", s.BatchID)
	}
	row("error", s.Error)
	row("error code", s.ErrorCode)
	if s.OutputFileName != "" && s.OutputFileSize != nil {
		row("output", fmt.Sprintf("%s, %s bytes", s.OutputFileName, display.Count(*s.OutputFileSize)))
	}
	row("created", a.Moment(s.CreatedAt))
	row("started", a.Moment(s.StartedAt))
	row("ended", a.Moment(s.CompletedAt))
	row("output until", a.Moment(s.OutputExpiresAt))
	_, err := t.WriteTo(a.Stdout)
	return err
}

// relative formats a run that triggered another one, or was triggered by it.
func relative(r contract.JobRunRef) string {
	if r.JobID == "" {
		return r.RunID
	}
	return r.RunID + " of job " + r.JobID
}

// fellBack formats a run's change to a fallback pool.
func (a *app) fellBack(f contract.FellBack) string {
	return fmt.Sprintf("from pool %s to pool %s at %s (%s): %s", f.From, f.To, a.Moment(f.At), f.Reason, display.Clean(f.Message))
}
