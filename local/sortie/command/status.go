package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
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
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
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
	of := ""
	if !a.JSON && s.Format == "" {
		if task, err := c.Task(ctx, s.TaskID); err == nil { // the status is complete without it
			of = display.Subject(task)
		}
	}
	return a.Table(s, a.Status(s, of))
}
