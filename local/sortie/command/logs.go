package command

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/contract"
)

// logPause is how long a log that is followed is left alone.
const logPause = time.Second

func (a *app) logs() *cobra.Command {
	var attempt int
	var follow bool
	c := &cobra.Command{
		Use:   "logs TASK",
		Short: "Show what the worker of a run has written",
		Long: `Show what the worker of a run has written: its last attempt, or the one that
--attempt names. With -f, what is added is shown too, until the attempt ends.

` + exitHelp,
		Example: `  sortie logs export_mods_1704857234567_a3f8c2d1
  sortie logs export_mods_1704857234567_a3f8c2d1 --attempt 1
  sortie logs -f export_mods_1704857234567_a3f8c2d1`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().IntVar(&attempt, "attempt", 0, "which attempt; 0 is the last one")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the attempt ends")
	c.RunE = does(func(ctx context.Context, args []string) error {
		if attempt < 0 {
			return wrong("--attempt is a number from 1")
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		return a.showLog(ctx, c, args[0], attempt, follow)
	})
	return c
}

// showLog writes a log, and while it is followed what is added. A log that
// nobody has yet is waited for.
func (a *app) showLog(ctx context.Context, c *client.Client, task string, attempt int, follow bool) error {
	var shown []byte
	for {
		log, err := c.Log(ctx, task, attempt)
		if p, ok := errors.AsType[*client.Problem](err); ok && follow && p.Status == http.StatusNotFound {
			status, failed := c.Status(ctx, task, 0)
			if failed != nil || status.Status != contract.StatusProcessing {
				return err
			}
			err = nil
		}
		if err != nil {
			return err
		}
		if _, err := a.Stdout.Write(added(shown, log.Text)); err != nil {
			return err
		}
		if log.Attempt > 0 { // there is one
			shown, attempt = log.Text, log.Attempt
		}
		if !follow || log.Ended {
			return nil
		}
		if err := clock.Sleep(ctx, a.Clock, logPause); err != nil {
			return err
		}
	}
}

// overlap is how much of what was shown is looked for in a log whose middle was
// cut out since then.
const overlap = 4 << 10

// added is what a log has that was not shown before.
func added(shown, log []byte) []byte {
	if bytes.HasPrefix(log, shown) {
		return log[len(shown):]
	}
	last := shown[max(0, len(shown)-overlap):]
	if at := bytes.LastIndex(log, last); at >= 0 {
		return log[at+len(last):]
	}
	return log
}
